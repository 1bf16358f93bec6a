//! Which API server, and as whom: the search for a configuration.
//!
//! The order is that of other operators: the kubeconfig named on the command line, `KUBECONFIG`, the ServiceAccount
//! of the pod we run in, `~/.kube/config`. The first that is *there* is used; if it is unusable that is an error, not
//! a reason to try the next one and surprise somebody with another cluster.

use kube::{
    Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use std::{
    env,
    path::{Path, PathBuf},
};

/// Why no configuration could be had.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read or makes no sense.
    #[error("cannot use kubeconfig {}: {reason}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// We run in a pod, but its ServiceAccount cannot be used.
    #[error("cannot use the pod's ServiceAccount: {0}; is automountServiceAccountToken off?")]
    InCluster(String),
    /// There is nothing to use.
    #[error("no cluster to talk to: give --kubeconfig, set KUBECONFIG, or run inside a cluster")]
    Nothing,
}

/// Finds the configuration; `kubeconfig` and `context` are what the user gave explicitly.
pub async fn load(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Config, ConfigError> {
    if let Some(path) = kubeconfig {
        return from_file(path, context).await;
    }
    if let Some(path) = env::var_os("KUBECONFIG").filter(|path| !path.is_empty()) {
        let path = env::split_paths(&path).next().unwrap_or_default();
        return from_file(&path, context).await;
    }
    if env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
        return Config::incluster().map_err(|error| ConfigError::InCluster(one_line(&error)));
    }
    let home = env::var_os("HOME").map(|home| Path::new(&home).join(".kube/config"));
    match home.filter(|path| path.exists()) {
        Some(path) => from_file(&path, context).await,
        None => Err(ConfigError::Nothing),
    }
}

async fn from_file(path: &Path, context: Option<&str>) -> Result<Config, ConfigError> {
    let unusable = |error: kube::config::KubeconfigError| ConfigError::Kubeconfig {
        path: path.to_owned(),
        reason: one_line(&error),
    };
    let kubeconfig = Kubeconfig::read_from(path).map_err(unusable)?;
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(unusable)
}

/// The error and its causes; kube's YAML errors draw an excerpt over several lines, of which the first says it all.
fn one_line(error: &dyn std::error::Error) -> String {
    let mut parts = vec![first_line(error)];
    let mut source = error.source();
    while let Some(inner) = source {
        let line = first_line(inner);
        if !parts.iter().any(|part| part.contains(&line)) {
            parts.push(line);
        }
        source = inner.source();
    }
    parts.join(": ")
}

fn first_line(error: &dyn std::error::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_missing_kubeconfig_is_named_in_one_line() {
        let error = load(Some(Path::new("/nonexistent/config")), None).await.unwrap_err().to_string();
        assert!(error.contains("/nonexistent/config"), "{error}");
        assert!(error.contains("No such file"), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }

    #[tokio::test]
    async fn a_kubeconfig_that_is_not_yaml_is_refused_in_one_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config");
        std::fs::write(&path, "clusters: [\n  {name").unwrap();
        let error = load(Some(&path), None).await.unwrap_err().to_string();
        assert!(error.starts_with("cannot use kubeconfig"), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }

    #[tokio::test]
    async fn an_unknown_context_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config");
        std::fs::write(&path, "{apiVersion: v1, kind: Config, clusters: [], contexts: [], users: []}")
            .unwrap();
        let error = load(Some(&path), Some("elsewhere")).await.unwrap_err().to_string();
        assert!(error.contains("elsewhere"), "{error}");
    }
}
