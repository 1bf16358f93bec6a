//! Whether the API server reaches our webhooks, and believes what answers there.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use linchpin_operator::webhooks::{BOOT_WEBHOOK, CertificateFault, inspect};
use linchpin_words::Period;
use serde_json::Value;

use super::text;
use crate::check::{
    facts::{CheckFacts, OPERATORS, UnseenFact, Webhooks, deployment, flag, tried_in},
    report::{CheckEnd, failed, list, ok, skipped, unseen, warning},
};

/// Certificates are renewed when a third of their thirty days is left; one that is nearer to its end was not.
const SOON: Period = Period::from_secs(5 * 24 * 3600);

const NONE: &str = "no webhook is configured";

/// Whether the one webhook that refuses something is asked: a circle is refused by it alone, and failures are ignored.
pub(super) fn webhook_answers(namespace: &str, facts: &CheckFacts) -> CheckEnd {
    let Some(asked) = &facts.circle else { return skipped(NONE) };
    let denied = format!("admission webhook \"{BOOT_WEBHOOK}\" denied");
    let address = deployment(facts).and_then(|deployment| flag(deployment, "webhook-bind-address"));
    let port = address.and_then(|address| address.rsplit_once(':')).map_or("9443", |(_, port)| port);
    let hint = format!("kubectl logs -n {namespace} -l {OPERATORS}; is port {port} open for the API server?");
    match asked {
        Err(UnseenFact::Forbidden(message) | UnseenFact::Failed(message)) if message.contains(&denied) => {
            ok("the API server reaches them")
        }
        Ok(_) => failed("the API server does not reach them: what they refuse is accepted", hint),
        Err(UnseenFact::Forbidden(_)) => {
            let place = tried_in(facts, namespace);
            skipped(format!("you may not create bootdependencies in {place}, which a dry run needs"))
        }
        Err(why) => unseen("a BootDependency, in a dry run,", why),
    }
}

/// Whether every configuration is there and names the authority of our certificate.
pub(super) fn webhook_ca(namespace: &str, facts: &CheckFacts) -> CheckEnd {
    if facts.webhooks.is_empty() {
        return skipped(NONE);
    }
    let (mut wrong, mut compared) = (Vec::new(), true);
    for webhooks in &facts.webhooks {
        let authority =
            webhooks.secret.as_ref().ok().map(|secret| text(&secret["data"]["ca.crt"]).to_owned());
        compared &= authority.is_some();
        for (called, looked) in &webhooks.configurations {
            match looked {
                Ok(found) if !believes(found, authority.as_deref()) => wrong.push(called.clone()),
                Ok(_) => {}
                Err(UnseenFact::Absent) if webhooks.may_be_absent => {}
                Err(UnseenFact::Absent) => {
                    return failed(
                        format!("{called} is not there"),
                        "upgrade the release, or: linchpin manifests --no-crds | kubectl apply --server-side -f -",
                    );
                }
                Err(why) => return unseen(called, why),
            }
        }
    }
    match (wrong.is_empty(), compared) {
        (true, true) => ok("the webhook configurations name the authority of our certificate"),
        (true, false) => ok("the webhook configurations name an authority"),
        (false, _) => failed(
            format!("{} does not name the authority of our certificate", list(&wrong)),
            format!("the leader writes it: kubectl logs -n {namespace} -l {OPERATORS}"),
        ),
    }
}

/// Whether all webhooks of a configuration name an authority: this one, if it is known.
fn believes(configuration: &Value, authority: Option<&str>) -> bool {
    let mut webhooks = configuration["webhooks"].as_array().into_iter().flatten();
    webhooks.all(|webhook| match text(&webhook["clientConfig"]["caBundle"]) {
        "" => false,
        bundle => authority.is_none_or(|authority| bundle == authority),
    })
}

/// Whether the certificate is believed for the name by which the API server calls.
pub(super) fn certificate_valid(namespace: &str, facts: &CheckFacts) -> CheckEnd {
    let Some(now) = facts.now.filter(|_| !facts.webhooks.is_empty()) else { return skipped(NONE) };
    for webhooks in &facts.webhooks {
        let Webhooks { secret_name, service, .. } = webhooks;
        let called = format!("Secret {namespace}/{secret_name}");
        let secret = match &webhooks.secret {
            Ok(secret) => secret,
            Err(UnseenFact::Absent) => {
                return failed(
                    format!("there is no {called}: no certificate was made"),
                    format!("kubectl logs -n {namespace} -l {OPERATORS}"),
                );
            }
            Err(why) => return unseen(&called, why),
        };
        let data = |key: &str| decoded(text(&secret["data"][key]));
        let anew = format!("kubectl delete secret {secret_name} -n {namespace}: the leader makes a new one");
        let problem = match inspect(&data("ca.crt"), &data("tls.crt"), service, now) {
            Ok(until) if until < now.plus(SOON) => {
                return warning(format!("the certificate in {called} expires within five days"), anew);
            }
            Ok(_) => continue,
            Err(CertificateFault::Expired) => "has expired".to_owned(),
            Err(CertificateFault::OtherName) => format!("is not for {service}"),
            Err(CertificateFault::OtherAuthority) => {
                "is signed by another authority than the one beside it".to_owned()
            }
            Err(CertificateFault::Unreadable) => "cannot be read".to_owned(),
            Err(CertificateFault::Other(why)) => format!("is not believed: {why}"),
        };
        return failed(format!("the certificate in {called} {problem}"), anew);
    }
    ok("the certificate of the webhooks is valid")
}

/// Data of a Secret as text; empty where it is none.
fn decoded(data: &str) -> String {
    STANDARD.decode(data).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}
