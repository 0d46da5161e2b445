"""An S3 server on this machine that checks signatures, with a fleet in it: `moto` from Python's package index.

Alone, it serves until it is ended: python s3.py FLEET prints its address and how to reach it."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time

BUCKET, PREFIX = "fleet", "prod"
# The requests that make the user, before signatures are checked.
UNSIGNED = 3
ALL = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}


def client(service, endpoint, key="-", secret="-"):
    import boto3
    from botocore.config import Config

    return boto3.client(
        service,
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        # A request that is repeated counts twice.
        config=Config(s3={"addressing_style": "path"}, read_timeout=300, retries={"total_max_attempts": 1}),
    )


@contextlib.contextmanager
def server(port=5555):
    """Address, key and secret of a server with an empty bucket."""
    program = os.path.join(os.path.dirname(sys.executable), "moto_server")
    environment = dict(os.environ, INITIAL_NO_AUTH_ACTION_COUNT=str(UNSIGNED))
    with open("moto.log", "w") as log:
        arguments = [program, "-H", "127.0.0.1", "-p", str(port)]
        running = subprocess.Popen(arguments, env=environment, stdout=log, stderr=log)
    try:
        endpoint = f"http://127.0.0.1:{port}"
        for _ in range(120):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if running.poll() is not None:
                sys.exit("the server has ended, see moto.log: is its port taken?")
            time.sleep(1)
        iam = client("iam", endpoint)
        iam.create_user(UserName="fleet")
        iam.put_user_policy(UserName="fleet", PolicyName="all", PolicyDocument=json.dumps(ALL))
        made = iam.create_access_key(UserName="fleet")["AccessKey"]
        key, secret = made["AccessKeyId"], made["SecretAccessKey"]
        client("s3", endpoint, key, secret).create_bucket(Bucket=BUCKET)
        yield endpoint, key, secret
    finally:
        running.terminate()
        running.wait()


def upload(fleet, endpoint, key, secret):
    store = client("s3", endpoint, key, secret)
    for folder, _, files in os.walk(os.path.join(fleet, "v1")):
        for name in files:
            path = os.path.join(folder, name)
            store.upload_file(path, BUCKET, f"{PREFIX}/{os.path.relpath(path, fleet)}")


if __name__ == "__main__":
    # Ends the server, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    with server() as (endpoint, key, secret):
        for fleet in sys.argv[1:]:
            upload(fleet, endpoint, key, secret)
        print(f"export AWS_ENDPOINT_URL={endpoint} AWS_ACCESS_KEY_ID={key} AWS_SECRET_ACCESS_KEY={secret}", flush=True)
        print(f"{endpoint}/{BUCKET}/{PREFIX}", flush=True)
        time.sleep(10**6)
