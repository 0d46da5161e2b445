//! The command line of this process.

/// The command line of this process as stored with a run; invalid UTF-8 is replaced.
pub fn given() -> Vec<String> {
    std::env::args_os()
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect()
}
