//! Where the rollups of a fleet are: `s3://BUCKET/PREFIX`, `gs://`, `az://`, `file:///FOLDER`.

use crate::connector::{ClockAhead, Connector};
use crate::problem::{Problem, ProblemKind};
use futures_util::TryStreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, RetryConfig};
use std::time::Duration;
use tokio::runtime::Runtime;
use url::Url;

/// Retries within one request; longer outages are the caller's.
const RETRIES: usize = 3;
const RETRY_FOR: Duration = Duration::from_secs(30);

/// An object store and the folder in it.
#[derive(Debug)]
pub struct Location {
    store: Box<dyn ObjectStore>,
    prefix: Path,
    ahead: ClockAhead,
    runtime: Runtime,
}

/// An object below a location.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its path below the location.
    pub path: String,
    pub bytes: u64,
    /// When it was written, seconds since the epoch, by the store's clock.
    pub modified_s: i64,
}

/// What became of an object that must not exist before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    New,
    Existed,
}

impl Location {
    /// Reads a URL. Credentials and further settings come from the environment, as the store's own tools find them.
    ///
    /// # Errors
    /// The URL has another form, or something is missing in the environment.
    pub fn open(url: &str) -> Result<Location, Problem> {
        let wrong = |why: &str| Problem::new(ProblemKind::Other, format!("{url}: {why}"));
        let parsed = Url::parse(url).map_err(|_| {
            wrong("write s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///FOLDER")
        })?;
        if parsed.password().is_some() || !parsed.username().is_empty() {
            return Err(wrong(
                "credentials belong into the environment, not into the URL",
            ));
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|error| Problem::new(ProblemKind::Local, error.to_string()))?;
        let ahead = ClockAhead::default();
        let connector = Connector(ahead.clone());
        let retry = RetryConfig {
            max_retries: RETRIES,
            retry_timeout: RETRY_FOR,
            ..RetryConfig::default()
        };
        let bucket = parsed.host_str().unwrap_or_default();
        let store: Box<dyn ObjectStore> = match parsed.scheme() {
            "file" => {
                let folder = parsed
                    .to_file_path()
                    .map_err(|()| wrong("this is no folder"))?;
                std::fs::create_dir_all(&folder).map_err(|error| wrong(&error.to_string()))?;
                let store = LocalFileSystem::new_with_prefix(&folder).map_err(Problem::from)?;
                return Ok(Location {
                    store: Box::new(store.with_fsync(true)),
                    prefix: Path::default(),
                    ahead,
                    runtime,
                });
            }
            _ if bucket.is_empty() => return Err(wrong("the name of the bucket is missing")),
            "s3" => Box::new(
                AmazonS3Builder::from_env()
                    .with_bucket_name(bucket)
                    .with_http_connector(connector)
                    .with_retry(retry)
                    .build()?,
            ),
            "gs" => Box::new(
                GoogleCloudStorageBuilder::from_env()
                    .with_bucket_name(bucket)
                    .with_http_connector(connector)
                    .with_retry(retry)
                    .build()?,
            ),
            "az" => Box::new(
                MicrosoftAzureBuilder::from_env()
                    .with_container_name(bucket)
                    .with_http_connector(connector)
                    .with_retry(retry)
                    .build()?,
            ),
            other => {
                return Err(wrong(&format!(
                    "there is no store '{other}': write s3, gs, az or file"
                )));
            }
        };
        Ok(Location {
            store,
            prefix: Path::from_url_path(parsed.path())
                .map_err(|error| wrong(&error.to_string()))?,
            ahead,
            runtime,
        })
    }

    /// By how many seconds this machine's clock is ahead of the store's, if it has said so.
    #[must_use]
    pub fn clock_ahead_s(&self) -> Option<i32> {
        self.ahead.seconds()
    }

    fn path(&self, below: &str) -> Path {
        // `Path::from` would escape the `=` of partitions.
        let prefix = self.prefix.as_ref();
        let text = match prefix.is_empty() {
            true => below.to_owned(),
            false => format!("{prefix}/{below}"),
        };
        Path::parse(&text).unwrap_or_else(|_| Path::from(text))
    }

    /// Writes an object, whether or not there is one of this name.
    ///
    /// # Errors
    /// The store does not take it.
    pub fn put(&self, below: &str, bytes: Vec<u8>) -> Result<(), Problem> {
        let path = self.path(below);
        let put = self.store.put(&path, bytes.into());
        self.runtime.block_on(put)?;
        Ok(())
    }

    /// Writes an object unless there is one of this name. Of two writers, one learns that it came second.
    ///
    /// # Errors
    /// The store does not take it, or cannot do this.
    pub fn create(&self, below: &str, bytes: Vec<u8>) -> Result<Created, Problem> {
        let path = self.path(below);
        let options = PutOptions::from(PutMode::Create);
        let put = self.store.put_opts(&path, bytes.into(), options);
        match self.runtime.block_on(put) {
            Ok(_) => Ok(Created::New),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(Created::Existed),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads an object; `None` if there is none.
    ///
    /// # Errors
    /// The store does not give it.
    pub fn get(&self, below: &str) -> Result<Option<Vec<u8>>, Problem> {
        let path = self.path(below);
        let get = async {
            let found = self.store.get(&path).await?;
            found.bytes().await
        };
        match self.runtime.block_on(get) {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes an object. One that is gone is no error.
    ///
    /// # Errors
    /// The store does not remove it.
    pub fn remove(&self, below: &str) -> Result<(), Problem> {
        let path = self.path(below);
        match self.runtime.block_on(self.store.delete(&path)) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The objects below a folder, in order of their paths.
    ///
    /// # Errors
    /// The store does not list them.
    pub fn list(&self, folder: &str) -> Result<Vec<Object>, Problem> {
        let path = self.path(folder);
        let list = self.store.list(Some(&path)).try_collect();
        let found: Vec<ObjectMeta> = self.runtime.block_on(list)?;
        let above = self.prefix.as_ref();
        let mut objects: Vec<Object> = found
            .into_iter()
            .filter_map(|of| {
                let below = of.location.as_ref().strip_prefix(above)?;
                Some(Object {
                    path: below.trim_start_matches('/').to_owned(),
                    bytes: of.size,
                    modified_s: of.last_modified.timestamp(),
                })
            })
            .collect();
        objects.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(objects)
    }

    /// The names of the folders right below a folder, in order.
    ///
    /// # Errors
    /// The store does not list them.
    pub fn folders(&self, folder: &str) -> Result<Vec<String>, Problem> {
        let path = self.path(folder);
        let list = self.store.list_with_delimiter(Some(&path));
        let found = self.runtime.block_on(list)?;
        let names = found.common_prefixes.iter();
        let mut names: Vec<String> = names
            .filter_map(|of| of.filename().map(str::to_owned))
            .collect();
        names.sort();
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_a_store() {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("file://{}", dir.path().join("new").display());
        let fleet = Location::open(&url).unwrap();
        let name = "v1/raw/cluster=a/day=2026-11-28/x.parquet";
        assert_eq!(fleet.get(name).unwrap(), None);
        fleet.put(name, b"one".to_vec()).unwrap();
        fleet.put(name, b"two".to_vec()).unwrap();
        assert_eq!(
            fleet.create(name, b"three".to_vec()).unwrap(),
            Created::Existed
        );
        assert_eq!(fleet.get(name).unwrap().unwrap(), b"two");
        assert!(
            dir.path().join("new").join(name).is_file(),
            "no letter is escaped"
        );
        let listed = fleet.list("v1/raw").unwrap();
        assert_eq!(
            (listed.len(), &*listed[0].path, listed[0].bytes),
            (1, name, 3)
        );
        assert_eq!(fleet.folders("v1/raw").unwrap(), ["cluster=a"]);
        fleet.remove(name).unwrap();
        fleet.remove(name).unwrap();
        assert!(fleet.list("v1").unwrap().is_empty());
    }

    #[test]
    fn wrong_urls_say_what_is_wrong() {
        for (url, says) in [
            ("bucket", "write s3://"),
            ("ftp://x/y", "there is no store 'ftp'"),
            ("s3:///x", "the name of the bucket is missing"),
            (
                "s3://key:secret@bucket/x",
                "credentials belong into the environment",
            ),
        ] {
            let problem = Location::open(url).unwrap_err().to_string();
            assert!(problem.contains(says), "{url}: {problem}");
        }
    }
}
