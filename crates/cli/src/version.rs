//! `linchpin version`: what was built, and from what.

/// The commit, if the build gave it in `LINCHPIN_COMMIT`.
pub(crate) const COMMIT: Option<&str> = option_env!("LINCHPIN_COMMIT");

/// Prints version, commit and the Kubernetes that `linchpin local` runs.
pub(crate) fn run() {
    println!("linchpin {}", env!("CARGO_PKG_VERSION"));
    println!("commit {}", COMMIT.unwrap_or("unknown"));
    #[cfg(feature = "local")]
    println!("local Kubernetes {}", linchpin_local::KUBERNETES_VERSION);
}
