//! The command line of this process.

/// The command line of this process as it is kept with a run; what is no UTF-8 in it is replaced.
pub fn given() -> Vec<String> {
    std::env::args_os()
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect()
}
