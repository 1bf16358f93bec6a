//! Running a command in a container, at most once.
//!
//! Until the server has switched protocols nothing has run, and a refusal is a plain failure. From then on the command
//! runs whether we listen or not: only the status that the server sends at its end says how it went, and if the
//! connection breaks before, the outcome cannot be known and nobody guesses. Output is read and thrown away, because a
//! command whose output nobody reads stops.
//!
//! Needs `get` on `pods/exec` (the request upgrades a GET), and `create` too from Kubernetes 1.35 on.

use super::{Job, classify::AttemptedRequest, written};
use crate::{
    call::{CallError, Resource},
    transport::TransportError,
};
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::Status};
use kube::{
    Api,
    api::{AttachParams, AttachedProcess},
};
use linchpin_engine::contract::{Done, ExecOrder, Failure};
use linchpin_words::{Gvk, text};
use tokio::io;

impl Job<'_> {
    pub(super) async fn exec(&self, order: &ExecOrder) -> Result<Done, Failure> {
        if order.command.is_empty() {
            return Err(Failure::Invalid("the command is empty".to_owned()));
        }
        let pods = Resource::new(Gvk::new("", "v1", "Pod"), "pods", true);
        let namespace = Some(order.namespace.as_str());
        // Names go into a path that kube builds: they must be names.
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
        };
        if !is_name(&order.pod) || !is_name(&order.namespace) || order.pod.starts_with('.') {
            return Err(Failure::Invalid(format!("{} is no name of a pod", text::quote(&order.pod))));
        }
        let attempt = self.attempt("create", &pods, namespace, &order.pod);
        let attempt = AttemptedRequest { subresource: Some("exec"), ..attempt };
        let mut parameters = AttachParams::default().stdin(false).stdout(true).stderr(true).tty(false);
        if let Some(container) = &order.container {
            parameters = parameters.container(container);
        }
        let api: Api<Pod> = Api::namespaced(self.reach.writes.clone(), &order.namespace);
        self.check()?;
        let process = match api.exec(&order.pod, &order.command, &parameters).await {
            Ok(process) => process,
            Err(error) => return Err(not_started(&attempt, &error)),
        };
        let status = finish(process).await;
        let target = Some(written(&pods, namespace, &order.pod));
        match status.as_ref().map(exit_code) {
            Some(Some(0)) => Ok(Done { target, exit: Some(0), ..Done::default() }),
            Some(Some(code)) => Err(Failure::Exit(code)),
            Some(None) | None => Err(Failure::Unknowable(format!(
                "the connection to {} ended before its command did",
                attempt.what()
            ))),
        }
    }
}

/// Reads all output and waits for the status; none if the connection ended without one.
async fn finish(mut process: AttachedProcess) -> Option<Status> {
    let status = process.take_status()?;
    let (stdout, stderr) = (process.stdout(), process.stderr());
    let drain = async {
        let drained = |reader| async move {
            if let Some(mut reader) = reader {
                let _ = io::copy(&mut reader, &mut io::sink()).await;
            }
        };
        tokio::join!(drained(stdout), drained(stderr));
        // The status comes after the last output.
        std::future::pending::<()>().await;
    };
    let status = tokio::select! {
        status = status => status,
        () = drain => None,
    };
    process.abort();
    status
}

/// The exit code in a status; none where it is another kind of end.
fn exit_code(status: &Status) -> Option<i32> {
    if status.status.as_deref() == Some("Success") {
        return Some(0);
    }
    let causes = status.details.as_ref()?.causes.as_ref()?;
    let cause = causes.iter().find(|cause| cause.reason.as_deref() == Some("ExitCode"))?;
    cause.message.as_ref()?.parse().ok()
}

/// The command was refused, or nobody knows whether it was.
fn not_started(attempt: &AttemptedRequest<'_>, error: &kube::Error) -> Failure {
    match error {
        kube::Error::Api(status) => {
            let container = status.message.contains("container");
            match attempt.failure(&CallError::from_kube(error)) {
                // The kubelet answers with plain errors: no such container, or it does not run (yet).
                Failure::Transient(_) | Failure::Invalid(_) if container => {
                    Failure::Gone(format!("{} has no running container of that name", attempt.what()))
                }
                failure => failure,
            }
        }
        other => match TransportError::behind(other) {
            Some(cause) if cause.certainly_not_sent() => Failure::Transient(text::line(&cause.to_string())),
            _ => Failure::Unknowable(format!("no answer to the command in {}", attempt.what())),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_exit_code_is_in_the_status() {
        let code = |status: serde_json::Value| exit_code(&serde_json::from_value(status).unwrap());
        assert_eq!(code(json!({"status": "Success"})), Some(0));
        let causes = json!([{"reason": "ExitCode", "message": "42"}]);
        assert_eq!(
            code(json!({"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}})),
            Some(42)
        );
        assert_eq!(code(json!({"status": "Failure", "reason": "InternalError", "message": "…"})), None);
    }
}
