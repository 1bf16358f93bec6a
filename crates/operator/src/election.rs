//! Leadership for the process: a campaign on the Lease, or, with leader election off, the leadership of a process that
//! is alone and only has to know whether the API server answers.

use crate::settings::LeaderElection;
use linchpin_cluster::{
    lease::{
        Campaign, CampaignError, Leadership,
        campaign::{CampaignStatus, LeaseRef},
    },
    transport::Transport,
};
use std::{
    fs,
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};
use tokio::sync::watch;

/// How often a process without a Lease asks whether the server is there.
const LOOK: Duration = Duration::from_secs(10);
/// And how often while it is not.
const LOOK_IN_TROUBLE: Duration = Duration::from_secs(1);

/// Either kind of leadership, ready to run.
pub(crate) enum Election {
    Campaign(Box<Campaign>),
    Alone {
        client: kube::Client,
        trouble: watch::Sender<Option<String>>,
        _leadership: watch::Sender<Leadership>,
    },
}

pub(crate) fn prepare(
    transport: &Transport,
    settings: Option<&LeaderElection>,
    default_namespace: &str,
) -> (Election, CampaignStatus) {
    let Some(settings) = settings else {
        let (trouble, trouble_seen) = watch::channel(Some("starting".to_owned()));
        let (leadership, leadership_seen) = watch::channel(Leadership::ALONE);
        let alone = Election::Alone { client: transport.writes(None), trouble, _leadership: leadership };
        return (alone, CampaignStatus { leadership: leadership_seen, trouble: trouble_seen });
    };
    let place = LeaseRef {
        namespace: settings.namespace.clone().unwrap_or_else(|| default_namespace.to_owned()),
        name: settings.name.clone(),
    };
    let identity = unique(&name(Some(settings)));
    tracing::info!(
        lease = format!("{}/{}", place.namespace, place.name),
        identity,
        "taking part in leader election"
    );
    let (campaign, status) = Campaign::new(transport, place, identity, settings.timing);
    (Election::Campaign(Box::new(campaign)), status)
}

impl Election {
    /// Runs until `stop`.
    pub(crate) async fn run(
        self,
        stop: impl Future<Output = ()>,
        pulse: impl Fn(),
    ) -> Result<(), CampaignError> {
        match self {
            Self::Campaign(campaign) => campaign.run(stop, pulse).await,
            Self::Alone { client, trouble, .. } => {
                tokio::select! {
                    () = stop => {}
                    () = look(&client, &trouble, pulse) => {}
                }
                Ok(())
            }
        }
    }
}

async fn look(client: &kube::Client, trouble: &watch::Sender<Option<String>>, pulse: impl Fn()) {
    loop {
        pulse();
        let found = match tokio::time::timeout(Duration::from_secs(2), client.apiserver_version()).await {
            Ok(Ok(_)) => None,
            Ok(Err(kube::Error::Service(error))) => Some(error.to_string()),
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("the API server does not answer".to_owned()),
        };
        let pause = if found.is_some() { LOOK_IN_TROUBLE } else { LOOK };
        trouble.send_if_modified(|known| {
            let changed = *known != found;
            *known = found;
            changed
        });
        tokio::time::sleep(pause).await;
    }
}

/// The Lease must distinguish a restarted process from the one before, so its name alone is not enough.
fn unique(name: &str) -> String {
    format!("{name}_{:016x}", RandomState::new().build_hasher().finish())
}

fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "linchpin".to_owned() } else { name.trim().to_owned() }
}

/// What this process is called: as chosen, or as its host.
pub(crate) fn name(settings: Option<&LeaderElection>) -> String {
    settings.and_then(|settings| settings.identity.clone()).unwrap_or_else(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_processes_on_one_host_have_different_names() {
        let (one, two) = (unique(&host()), unique(&host()));
        assert_ne!(one, two);
        assert!(one.starts_with(&host()));
    }
}
