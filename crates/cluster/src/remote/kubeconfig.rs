//! Reading a user's kubeconfig without doing what it says: no programs, no files, no proxies, no blind trust.

use kube::{
    Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use linchpin_words::limits;

/// Why a kubeconfig is not used. Never repeats any of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KubeconfigRefused {
    #[error("it is larger than {} bytes", limits::KUBECONFIG)]
    TooLarge,
    #[error("it is no kubeconfig")]
    UnreadableReply,
    #[error("its current context names no cluster and user of its own")]
    NoContext,
    #[error("it has {0}, which is not allowed here: embed the credential itself")]
    NotAllowed(&'static str),
    #[error("its server is not an https address")]
    Server,
}

/// The configuration that a kubeconfig describes, if it is harmless.
pub(crate) async fn read(bytes: &[u8]) -> Result<Config, KubeconfigRefused> {
    if bytes.len() > limits::KUBECONFIG {
        return Err(KubeconfigRefused::TooLarge);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| KubeconfigRefused::UnreadableReply)?;
    let kubeconfig = Kubeconfig::from_yaml(text).map_err(|_| KubeconfigRefused::UnreadableReply)?;
    check(&kubeconfig)?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|_| KubeconfigRefused::UnreadableReply)?;
    // A proxy may still have come from our own environment, which is not meant for other clusters.
    config.proxy_url = None;
    if config.cluster_url.scheme_str() != Some("https") {
        return Err(KubeconfigRefused::Server);
    }
    Ok(config)
}

fn check(kubeconfig: &Kubeconfig) -> Result<(), KubeconfigRefused> {
    let current = kubeconfig.current_context.as_ref().ok_or(KubeconfigRefused::NoContext)?;
    let context = kubeconfig.contexts.iter().find(|context| context.name == *current);
    let context = context.and_then(|context| context.context.as_ref()).ok_or(KubeconfigRefused::NoContext)?;
    let cluster = kubeconfig.clusters.iter().find(|cluster| cluster.name == context.cluster);
    let cluster = cluster.and_then(|cluster| cluster.cluster.as_ref()).ok_or(KubeconfigRefused::NoContext)?;
    let user = kubeconfig.auth_infos.iter().find(|user| Some(&user.name) == context.user.as_ref());
    let user = user.and_then(|user| user.auth_info.as_ref()).ok_or(KubeconfigRefused::NoContext)?;
    let refused = [
        (user.exec.is_some(), "a credential program (exec)"),
        (user.auth_provider.is_some(), "an auth-provider"),
        (cluster.certificate_authority.is_some(), "a file (certificate-authority)"),
        (user.client_certificate.is_some(), "a file (client-certificate)"),
        (user.client_key.is_some(), "a file (client-key)"),
        (user.token_file.is_some(), "a file (tokenFile)"),
        (cluster.proxy_url.is_some(), "a proxy-url"),
        (cluster.insecure_skip_tls_verify == Some(true), "insecure-skip-tls-verify"),
    ];
    match refused.into_iter().find(|(present, _)| *present) {
        Some((_, what)) => Err(KubeconfigRefused::NotAllowed(what)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubeconfig(cluster: &str, user: &str) -> String {
        format!(
            "{{apiVersion: v1, kind: Config, current-context: c, contexts: [{{name: c, context: {{cluster: k, user: u}}}}], \
             clusters: [{{name: k, cluster: {{{cluster}}}}}], users: [{{name: u, user: {{{user}}}}}]}}"
        )
    }

    #[tokio::test]
    async fn an_embedded_credential_is_used() {
        let config =
            read(kubeconfig("server: 'https://10.0.0.1:6443'", "token: t").as_bytes()).await.unwrap();
        assert_eq!(config.cluster_url.to_string(), "https://10.0.0.1:6443/");
        assert!(config.proxy_url.is_none());
    }

    #[tokio::test]
    async fn what_reaches_beyond_the_kubeconfig_is_refused() {
        let server = "server: 'https://10.0.0.1:6443'";
        let cases = [
            (server.to_owned(), "exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}", "exec"),
            (server.to_owned(), "auth-provider: {name: gcp}", "auth-provider"),
            (server.to_owned(), "tokenFile: /etc/passwd", "tokenFile"),
            (server.to_owned(), "client-certificate: /a", "client-certificate"),
            (server.to_owned(), "client-key: /a", "client-key"),
            (format!("{server}, certificate-authority: /a"), "token: hunter2", "certificate-authority"),
            (format!("{server}, proxy-url: 'http://x'"), "token: hunter2", "proxy-url"),
            (format!("{server}, insecure-skip-tls-verify: true"), "token: hunter2", "insecure"),
            ("server: 'http://10.0.0.1'".to_owned(), "token: hunter2", "https"),
        ];
        for (cluster, user, said) in cases {
            let error = read(kubeconfig(&cluster, user).as_bytes()).await.unwrap_err().to_string();
            assert!(error.contains(said), "{user}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[tokio::test]
    async fn garbage_is_refused_without_repeating_it() {
        for text in ["hunter2: [", "", "[]", "{current-context: x}"] {
            let error = read(text.as_bytes()).await.unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
        let large = vec![b' '; limits::KUBECONFIG + 1];
        assert_eq!(read(&large).await.unwrap_err(), KubeconfigRefused::TooLarge);
        let larger = vec![b' '; limits::KUBECONFIG * 100];
        assert_eq!(read(&larger).await.unwrap_err(), KubeconfigRefused::TooLarge);
    }
}
