//! Keeps certificates and configurations as they must be.
//!
//! The Secret and both configurations are watched by name, so nothing is asked for while nothing changes. Every replica
//! shows the certificate that the Secret holds; only the leader writes. What it writes comes back through the watch, and
//! what was refused is tried again at the next look.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use linchpin_cluster::{
    lease::{Fence, Leadership},
    own::{OperatorRequestError, OperatorRequests, OwnEvent, OwnKind, OwnTarget, OwnTrouble, follow_one},
    owner_in,
};
use linchpin_words::{Gvk, Timestamp};
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::{
    configuration::{self, ConfigurationInput, WebhookType},
    material::{self, Material},
    server::Certificate,
    settings::{WebhookAddress, WebhookSettings},
};
use crate::{certificates, controller::now};

/// How often everything is looked over, and how often files are read.
const PERIOD: Duration = Duration::from_secs(2);
/// How long one request may take.
const DEADLINE: Duration = Duration::from_secs(5);

/// What a watch says of one object.
#[derive(Clone, Debug, Default)]
enum View {
    /// Nothing yet.
    #[default]
    Unknown,
    /// It may not be looked at.
    Forbidden,
    /// It does not exist.
    Absent,
    /// It is there.
    There(Value),
}

/// Which watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    Secret,
    Configuration(WebhookType),
}

/// What a configuration says; none where it is not to be there.
pub(crate) type Content = Arc<dyn Fn(WebhookType, &ConfigurationInput<'_>) -> Option<Value> + Send + Sync>;

/// Whose webhooks are kept.
#[derive(Clone)]
pub(super) struct KeptWebhooks {
    /// The Secret with the certificates.
    pub(super) secret: &'static str,
    /// What the configurations say.
    pub(super) content: Content,
    /// Whether they are written whole also where they name a Service: nobody else makes them.
    pub(super) whole: bool,
    /// The namespace of our own pods, which no webhook is called for; empty where we run elsewhere.
    pub(super) untouched: String,
}

/// The keeper.
pub(super) struct WebhookKeeper {
    own_requests: OperatorRequests,
    charge: KeptWebhooks,
    settings: Arc<WebhookSettings>,
    /// The names that the certificate must have.
    names: Vec<String>,
    own_namespace: String,
    leadership: watch::Receiver<Leadership>,
    certificate: Certificate,
    secret: View,
    /// What the Secret holds, if that is of use.
    stored: Option<Material>,
    configurations: BTreeMap<&'static str, View>,
    /// What is kept where the Secret may not be written.
    in_memory: Option<Material>,
    /// What is shown now.
    shown: Option<String>,
    /// The last thing that went wrong, so that it is said once.
    trouble: Option<String>,
}

impl WebhookKeeper {
    pub(super) fn new(
        own_requests: OperatorRequests,
        charge: KeptWebhooks,
        settings: Arc<WebhookSettings>,
        names: Vec<String>,
        own_namespace: String,
        leadership: watch::Receiver<Leadership>,
        certificate: Certificate,
    ) -> Self {
        Self {
            own_requests,
            charge,
            settings,
            names,
            own_namespace,
            leadership,
            certificate,
            secret: View::Unknown,
            stored: None,
            configurations: BTreeMap::new(),
            in_memory: None,
            shown: None,
            trouble: None,
        }
    }

    /// Keeps until dropped.
    pub(super) async fn run(mut self) {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let own_requests = self.own_requests.clone();
        let own_namespace = self.own_namespace.clone();
        let follow = |about: About, kind: OwnKind, namespace: Option<String>, name: String| {
            let (sender, own_requests) = (sender.clone(), own_requests.clone());
            async move {
                let report = move |event| drop(sender.send((about, event)));
                follow_one(own_requests.client().watches(), &kind, namespace.as_deref(), &name, report).await;
            }
        };
        // With certificates of somebody else's there is no Secret of ours.
        let has_secret = self.settings.cert_dir.is_none();
        let secret_name = self.charge.secret;
        let secret = async {
            if has_secret {
                follow(About::Secret, secret_kind(), Some(own_namespace), secret_name.to_owned()).await;
            } else {
                futures::future::pending::<()>().await;
            }
        };
        let prefix = self.settings.config_name.clone();
        let configuration = |which: WebhookType| {
            follow(About::Configuration(which), configuration_kind(which), None, which.name(&prefix))
        };
        let followers = futures::future::join3(
            secret,
            configuration(WebhookType::Mutating),
            configuration(WebhookType::Validating),
        );
        let mut tick = tokio::time::interval(PERIOD);
        let mut leadership = self.leadership.clone();
        tokio::pin!(followers);
        loop {
            tokio::select! {
                _ = &mut followers => return,
                event = receiver.recv() => match event {
                    Some((about, event)) => { if !self.note(about, event) { continue; } }
                    None => return,
                },
                _ = tick.tick() => {}
                changed = leadership.changed() => if changed.is_err() { return; },
            }
            let result = self.look(now()).await;
            self.say(result.err());
        }
    }

    /// Takes down what a watch says; whether that is worth a look.
    fn note(&mut self, about: About, event: OwnEvent) -> bool {
        let view = match about {
            About::Secret => &mut self.secret,
            About::Configuration(which) => self.configurations.entry(which.kind()).or_default(),
        };
        match event {
            OwnEvent::There(object) => *view = object.read().map_or(View::Unknown, View::There),
            OwnEvent::Gone(_) => *view = View::Absent,
            OwnEvent::Synced if matches!(view, View::Unknown | View::Forbidden) => *view = View::Absent,
            OwnEvent::Trouble(OwnTrouble::Forbidden(_)) if !matches!(view, View::There(_)) => {
                *view = View::Forbidden;
            }
            OwnEvent::Synced | OwnEvent::Trouble(_) => return false,
        }
        if let (About::Secret, View::There(secret)) = (about, &self.secret) {
            self.stored = Material::read(secret).filter(|material| material.is_usable(now()));
        }
        true
    }

    /// One look over everything.
    async fn look(&mut self, now: Timestamp) -> Result<(), String> {
        let bundle = match self.settings.cert_dir.clone() {
            Some(directory) => self.show_files(&directory)?,
            None => self.keep_secret(now).await?,
        };
        if let Some(bundle) = bundle.filter(|_| self.leads()) {
            for which in WebhookType::ALL {
                self.keep_configuration(which, &bundle).await?;
            }
        }
        Ok(())
    }

    fn leads(&self) -> bool {
        Fence::current(&self.leadership).is_some_and(|fence| fence.check().is_ok())
    }

    /// Shows the certificate of a directory; what is to be published, if it is there too.
    fn show_files(&mut self, directory: &Path) -> Result<Option<String>, String> {
        let read = |name: &str| {
            let path = directory.join(name);
            std::fs::read_to_string(&path).map_err(|error| format!("reading {}: {error}", path.display()))
        };
        let certificate = read("tls.crt")?;
        self.show(&certificate, &read("tls.key")?)?;
        let bundle = read("ca.crt").ok().filter(|bundle| !bundle.is_empty());
        // A certificate that nobody else signed is its own authority; where the chart has its own, that one stays.
        let alone = matches!(self.settings.reached, WebhookAddress::Url { .. });
        Ok(bundle.or(alone.then_some(certificate)))
    }

    fn show(&mut self, certificate: &str, key: &str) -> Result<(), String> {
        if self.shown.as_deref() != Some(certificate) {
            self.certificate.show(certificate, key).map_err(|error| error.to_string())?;
            self.shown = Some(certificate.to_owned());
            tracing::info!("webhooks show a new certificate");
        }
        Ok(())
    }

    /// Renews what is in the Secret, shows it, and says what is to be published.
    async fn keep_secret(&mut self, now: Timestamp) -> Result<Option<String>, String> {
        let names = self.names.clone();
        let current = match &self.secret {
            View::Unknown => return Ok(None),
            View::Forbidden => self.in_memory.clone(),
            View::Absent => None,
            View::There(_) => self.stored.clone(),
        };
        if let Some(material) = &current {
            self.show(&material.certificate, &material.key)?;
        }
        if !self.leads() {
            return Ok(None);
        }
        let published = current.as_ref().is_some_and(|material| self.is_published(&material.bundle()));
        let stored = current.as_ref().map(|material| material.stored(&names));
        let step = certificates::next(stored.as_ref(), published, now);
        let changed =
            Material::after(current.as_ref(), step, &names, now).map_err(|error| error.to_string())?;
        let Some(material) = changed else {
            return Ok(current.map(|material| material.bundle()));
        };
        match self.store(&material).await {
            // It comes back through the watch, and is shown and published then.
            Ok(()) | Err(OperatorRequestError::Conflict) => Ok(None),
            Err(error @ OperatorRequestError::Forbidden { .. }) => {
                let said = format!("the certificate of the webhooks is kept in memory: {error}");
                self.say(Some(said));
                self.secret = View::Forbidden;
                self.show(&material.certificate, &material.key)?;
                let bundle = material.bundle();
                self.in_memory = Some(material);
                Ok(Some(bundle))
            }
            Err(error) => Err(format!("storing the certificate of the webhooks: {error}")),
        }
    }

    async fn store(&self, material: &Material) -> Result<(), OperatorRequestError> {
        let stored = match &self.secret {
            View::Forbidden => {
                return Err(OperatorRequestError::Forbidden { verb: "watch", plural: "secrets".to_owned() });
            }
            View::There(stored) => Some(stored),
            View::Unknown | View::Absent => None,
        };
        let namespace = self.own_namespace.as_str();
        let name = self.charge.secret;
        let owner = owner_in(self.own_requests.client().writes(), namespace).await;
        let body = material::secret(name, namespace, stored, material, owner.as_ref());
        let kind = secret_kind();
        match stored {
            None => self.own_requests.create(&kind, Some(namespace), &body, DEADLINE).await,
            Some(_) => self.own_requests.replace(&kind, Some(namespace), name, &body, DEADLINE).await,
        }
    }

    /// Whether every configuration that there is names these authorities.
    fn is_published(&self, bundle: &str) -> bool {
        WebhookType::ALL.iter().all(|which| match self.configurations.get(which.kind()) {
            Some(View::There(stored)) => configuration::is_published(stored, bundle),
            Some(View::Absent) => true,
            Some(View::Unknown | View::Forbidden) | None => false,
        })
    }

    async fn keep_configuration(&self, which: WebhookType, bundle: &str) -> Result<(), String> {
        let kind = configuration_kind(which);
        let name = which.name(&self.settings.config_name);
        let stored = match self.configurations.get(which.kind()) {
            Some(View::There(stored)) => Some(stored),
            Some(View::Absent) => None,
            Some(View::Unknown | View::Forbidden) | None => return Ok(()),
        };
        let word = self.certificate.word();
        let ingredients = ConfigurationInput {
            reached: &self.settings.reached,
            bundle,
            namespaces: &self.settings.namespaces,
            own_namespace: &self.charge.untouched,
            prefix: &self.settings.config_name,
            word: &word,
        };
        let Some(wanted) = (self.charge.content)(which, &ingredients) else {
            let uid = stored.and_then(|stored| stored["metadata"]["uid"].as_str());
            let Some(uid) = uid.filter(|_| self.charge.whole) else { return Ok(()) };
            let place = OwnTarget { kind: &kind, namespace: None, name: &name };
            let removed = self.own_requests.remove(place, uid, DEADLINE).await;
            return removed.map_err(|error| format!("deleting {} {name}: {error}", which.kind()));
        };
        let whole = self.charge.whole || matches!(self.settings.reached, WebhookAddress::Url { .. });
        let written = match (whole, stored) {
            // The chart's: it makes them, and we keep the one field that it cannot know.
            (false, None) => return Ok(()),
            (false, Some(stored)) => match configuration::publish(stored, bundle) {
                None => return Ok(()),
                Some(patch) => self.own_requests.patch(&kind, None, &name, &patch, DEADLINE).await,
            },
            (true, None) => self.own_requests.create(&kind, None, &wanted, DEADLINE).await,
            (true, Some(stored)) => {
                let wanted = configuration::over(stored, wanted);
                if configuration::covers(stored, &wanted) {
                    return Ok(());
                }
                self.own_requests.replace(&kind, None, &name, &wanted, DEADLINE).await
            }
        };
        match written {
            Ok(()) | Err(OperatorRequestError::Conflict) => Ok(()),
            Err(error) => Err(format!("writing {} {name}: {error}", which.kind())),
        }
    }

    /// Says what goes wrong, once.
    fn say(&mut self, trouble: Option<String>) {
        if let Some(trouble) = trouble.as_ref().filter(|trouble| self.trouble.as_ref() != Some(trouble)) {
            tracing::warn!("webhooks: {trouble}");
        }
        if trouble.is_some() {
            self.trouble = trouble;
        }
    }
}

fn secret_kind() -> OwnKind {
    OwnKind::new(&Gvk::new("", "v1", "Secret"), "secrets", true)
}

fn configuration_kind(which: WebhookType) -> OwnKind {
    OwnKind::new(&Gvk::new("admissionregistration.k8s.io", "v1", which.kind()), which.plural(), false)
}
