//! The audit policy: the API server's own record of every request, the independent witness of our tests.
//!
//! Whole requests and answers for our kinds; for everything else who did what to which object, when, and with which
//! result. Never the content of a Secret or a token.

/// The policy file's content.
pub(crate) const POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: RequestResponse
  resources:
  - group: tools.kubestellar.io
  - group: app.example.com
  - group: linchpin.dev
  - group: core.bootchain-operator.ruicoelho.dev
- level: Metadata
";
