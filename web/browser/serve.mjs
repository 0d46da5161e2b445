export async function serve() {}
