//! Which API server, and as whom: the search for a configuration.
//!
//! The order is that of other operators: the kubeconfig named on the command line, `KUBECONFIG`, the ServiceAccount
//! of the pod we run in, `~/.kube/config`. The first that is *there* is used; if it is unusable that is an error, not
//! a reason to try the next one and surprise somebody with another cluster.

use kube::{
    Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use std::{
    env,
    io::ErrorKind,
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
        return from_files(&env::split_paths(&path).collect::<Vec<_>>(), context).await;
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
    let kubeconfig = read(path)?;
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| unusable(path, &error))
}

/// Several files as one, as kubectl takes them: what an earlier one says counts, and of several some may be missing.
async fn from_files(paths: &[PathBuf], context: Option<&str>) -> Result<Config, ConfigError> {
    let there: Vec<&PathBuf> = paths.iter().filter(|path| path.exists()).collect();
    let [first, _, ..] = there.as_slice() else {
        let one = there.first().copied().or(paths.first()).cloned().unwrap_or_default();
        return from_file(&one, context).await;
    };
    let mut merged = Kubeconfig::default();
    for path in &there {
        merged = merged.merge(read(path)?).map_err(|error| unusable(path, &error))?;
    }
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(merged, &options).await.map_err(|error| unusable(first, &error))
}

fn read(path: &Path) -> Result<Kubeconfig, ConfigError> {
    Kubeconfig::read_from(path).map_err(|error| unusable(path, &error))
}

fn unusable(path: &Path, error: &KubeconfigError) -> ConfigError {
    let reason = match error {
        KubeconfigError::ReadConfig(error, _) if error.kind() == ErrorKind::NotFound => {
            "there is no such file".to_owned()
        }
        KubeconfigError::ReadConfig(error, _) if error.kind() == ErrorKind::PermissionDenied => {
            "you may not read it".to_owned()
        }
        other => one_line(other),
    };
    ConfigError::Kubeconfig { path: path.to_owned(), reason }
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
        assert_eq!(error, "cannot use kubeconfig /nonexistent/config: there is no such file");
    }

    #[tokio::test]
    async fn several_kubeconfigs_are_one_and_some_may_be_missing() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, current: &str| {
            let path = directory.path().join(name);
            let text = format!(
                "{{apiVersion: v1, kind: Config, {current}users: [], clusters: [{{name: {name}, cluster: {{server: 'http://{name}.example:1'}}}}], \
                 contexts: [{{name: {name}, context: {{cluster: {name}}}}}]}}"
            );
            std::fs::write(&path, text).unwrap();
            path
        };
        let (east, west) = (file("east", ""), file("west", "current-context: west, "));
        let nowhere = directory.path().join("nowhere");
        let all = [nowhere.clone(), east, west];
        let server = async |context| from_files(&all, context).await.unwrap().cluster_url.to_string();
        assert_eq!(server(None).await, "http://west.example:1/", "the one that says it is current");
        assert_eq!(server(Some("east")).await, "http://east.example:1/");
        let none = from_files(&[nowhere], None).await.unwrap_err().to_string();
        assert!(none.ends_with("nowhere: there is no such file"), "{none}");
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
