//! Kubeconfigs: one file each that holds the address, the authority and a client certificate, so that it can be
//! copied anywhere.

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::certificates::PemPair;

/// The content of a kubeconfig for the server at `server`, trusted by `authority`, as the holder of `pair`.
pub(crate) fn render(server: &str, authority: &str, user: &str, pair: &PemPair) -> String {
    let encode = |pem: &str| STANDARD.encode(pem);
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: linchpin-local
  cluster:
    server: {server}
    certificate-authority-data: {authority}
users:
- name: {user:?}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: linchpin-local
  context:
    cluster: linchpin-local
    user: {user:?}
current-context: linchpin-local
",
        authority = encode(authority),
        certificate = encode(&pair.certificate),
        key = encode(&pair.key),
    )
}
