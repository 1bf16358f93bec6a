//! Everything a user can choose about the process, parsed and checked. The command line fills it in.

use crate::webhooks::WebhookSettings;
use linchpin_cluster::lease::Timing;
use linchpin_source::hosts::HostList;
use linchpin_words::{GroupKind, egress::Egress};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    fmt,
    net::{SocketAddr, ToSocketAddrs},
    num::NonZeroUsize,
    path::PathBuf,
    str::FromStr,
};

/// The whole configuration of one operator process.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The kubeconfig given explicitly; otherwise the usual places are searched.
    pub kubeconfig: Option<PathBuf>,
    /// The context in it; otherwise the current one.
    pub context: Option<String>,
    /// How leaders are elected; none means that this process acts alone.
    pub leader_election: Option<LeaderElection>,
    /// Where `/metrics` is served.
    pub metrics_address: BindAddress,
    /// Where `/livez` and `/readyz` are served.
    pub health_address: BindAddress,
    /// The namespaces whose objects are served.
    pub watch_namespaces: Namespaces,
    /// The doors that are open: the kinds whose objects are served.
    pub doors: Doors,
    /// The ClusterRole that makes a namespace a tenant when it is bound to the operator there.
    pub tenant_role: String,
    /// How many writes of one namespace may be under way at a time; of all together twice as many.
    pub concurrency: NonZeroUsize,
    /// The ServiceAccount that acts for objects which name none.
    pub default_service_account: String,
    /// Whether objects in `kube-*` and in the operator's own namespace are served.
    pub allow_system_namespaces: bool,
    /// Whether kubeconfigs of other clusters may point at loopback addresses.
    pub allow_loopback_clusters: bool,
    /// What may be probed, and how.
    pub probes: ProbeSettings,
    /// Where sources may be fetched from.
    pub sources: SourceSettings,
    /// The namespaces whose pods and workloads may be held, by their labels: a label selector as in the API.
    pub boot_namespaces: Value,
    /// The webhooks; none where they are switched off.
    pub webhooks: Option<WebhookSettings>,
    /// The commit the program was built from, for the build information.
    pub commit: Option<String>,
}

/// A process that acts alone and opens no port: what flags and tests say is said on top of it.
impl Default for Settings {
    fn default() -> Self {
        Self {
            kubeconfig: None,
            context: None,
            leader_election: None,
            metrics_address: BindAddress::Off,
            health_address: BindAddress::Off,
            watch_namespaces: Namespaces::All,
            doors: Doors::default(),
            tenant_role: String::new(),
            concurrency: NonZeroUsize::MIN,
            default_service_account: "default".to_owned(),
            allow_system_namespaces: false,
            allow_loopback_clusters: false,
            probes: ProbeSettings::default(),
            sources: SourceSettings::default(),
            boot_namespaces: serde_json::json!({}),
            webhooks: None,
            commit: None,
        }
    }
}

impl Settings {
    /// Whether the process runs in a pod of the cluster that it serves.
    pub(crate) fn is_in_cluster(&self) -> bool {
        self.kubeconfig.is_none() && std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
    }

    /// Which addresses the servers of other clusters may have: the rule of probes.
    pub fn cluster_egress(&self) -> Egress {
        let egress = self.probes.egress.clone();
        if self.allow_loopback_clusters { egress.with_loopback() } else { egress }
    }
}

/// What the operator may probe for a text that a user wrote.
#[derive(Debug, Clone)]
pub struct ProbeSettings {
    /// Which addresses may be connected to.
    pub egress: Egress,
    /// Which methods may be sent.
    pub methods: BTreeSet<String>,
    /// The domain of Services; otherwise that of the pod's `/etc/resolv.conf`.
    pub cluster_domain: Option<String>,
}

/// The hosts that sources may be fetched from. Addresses are judged as those of probes are.
#[derive(Debug, Clone)]
pub struct SourceSettings {
    /// Hosts that users may name.
    pub hosts: HostList,
    /// Hosts that the status of an object of Flux may name.
    pub flux_hosts: HostList,
}

/// Where Flux serves artifacts, unless it was installed elsewhere.
pub const FLUX_HOSTS: &str = "http://source-controller.flux-system.svc.cluster.local";

impl Default for SourceSettings {
    /// Nothing may be fetched.
    fn default() -> Self {
        Self { hosts: HostList::none("--source-hosts"), flux_hosts: HostList::none("--flux-hosts") }
    }
}

impl SourceSettings {
    /// Reads both lists.
    ///
    /// # Errors
    /// An entry is no host; which one, and of which flag.
    pub fn parse(hosts: &str, flux_hosts: &str) -> Result<Self, String> {
        let list = |flag, text| HostList::parse(flag, text).map_err(|error| format!("{flag}: {error}"));
        Ok(Self { hosts: list("--source-hosts", hosts)?, flux_hosts: list("--flux-hosts", flux_hosts)? })
    }
}

/// Methods that change nothing.
pub const HARMLESS_METHODS: [&str; 2] = ["GET", "HEAD"];

impl Default for ProbeSettings {
    fn default() -> Self {
        let methods = HARMLESS_METHODS.map(str::to_owned).into();
        Self { egress: Egress::default(), methods, cluster_domain: None }
    }
}

impl ProbeSettings {
    /// The domain of Services: as given, else that of a `svc.` entry of a `resolv.conf`, else the usual one.
    pub fn domain(&self, resolv_conf: &str) -> String {
        let mut words = resolv_conf
            .lines()
            .filter_map(|line| line.strip_prefix("search").filter(|rest| rest.starts_with([' ', '\t'])))
            .flat_map(str::split_whitespace);
        let found = words.find_map(|word| word.strip_prefix("svc.")).map(str::to_owned);
        self.cluster_domain.clone().or(found).unwrap_or_else(|| "cluster.local".to_owned())
    }
}

/// Where and how leaders are elected.
#[derive(Debug, Clone)]
pub struct LeaderElection {
    /// The name of the Lease.
    pub name: String,
    /// Its namespace; otherwise the one of the pod or of the kubeconfig's context.
    pub namespace: Option<String>,
    /// How this process is called in it, made unique by a random ending; otherwise the name of the host.
    pub identity: Option<String>,
    /// The times of the protocol.
    pub timing: Timing,
}

/// Which namespaces are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Namespaces {
    /// Every one.
    All,
    /// Only these.
    Only(BTreeSet<String>),
}

impl FromStr for Namespaces {
    type Err = NamespacesError;

    /// Names separated by commas; nothing at all means every namespace.
    fn from_str(text: &str) -> Result<Self, NamespacesError> {
        if text.trim().is_empty() {
            return Ok(Self::All);
        }
        let names = text.split(',').map(str::trim).map(|name| {
            let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            let edge = |byte: Option<&u8>| byte.is_some_and(|byte| *byte != b'-');
            let bytes = name.as_bytes();
            let valid = bytes.len() <= 63
                && bytes.iter().copied().all(allowed)
                && edge(bytes.first())
                && edge(bytes.last());
            if valid { Ok(name.to_owned()) } else { Err(NamespacesError(name.to_owned())) }
        });
        names.collect::<Result<_, _>>().map(Self::Only)
    }
}

/// A text that is no namespace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the name of a namespace: lower-case letters, digits and dashes, at most 63")]
pub struct NamespacesError(pub String);

/// The kinds that are served, or not, together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DoorName {
    /// ResourceDependency and DependencyGroup.
    ResourceDependency,
    /// AppBundle, and its `BundleRevisions`.
    AppBundle,
    /// Sync, `GlobalDependency` and Capability.
    Sync,
    /// BootDependency, the pods that it holds, and the webhooks.
    BootDependency,
}

impl DoorName {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::ResourceDependency, Self::AppBundle, Self::Sync, Self::BootDependency];

    /// The word in `--doors` and under `doors` in the chart's values.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ResourceDependency => "resourceDependency",
            Self::AppBundle => "appBundle",
            Self::Sync => "sync",
            Self::BootDependency => "bootDependency",
        }
    }

    /// The group of the kinds behind it, and these.
    const fn kinds(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::ResourceDependency => ("tools.kubestellar.io", &["ResourceDependency", "DependencyGroup"]),
            Self::AppBundle => ("app.example.com", &["AppBundle", "BundleRevision"]),
            Self::Sync => ("linchpin.dev", &["Sync", "GlobalDependency", "Capability"]),
            Self::BootDependency => ("core.bootchain-operator.ruicoelho.dev", &["BootDependency"]),
        }
    }

    /// The door of a kind; none for a kind that is always served.
    fn of(kind: &GroupKind) -> Option<Self> {
        Self::ALL.into_iter().find(|door| {
            let (group, kinds) = door.kinds();
            kind.group == group && kinds.contains(&kind.kind.as_str())
        })
    }
}

impl fmt::Display for DoorName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The doors that are open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doors(BTreeSet<DoorName>);

impl Doors {
    /// Whether a door is open.
    pub fn has(&self, door: DoorName) -> bool {
        self.0.contains(&door)
    }

    /// Whether objects of a kind are served.
    pub fn serve(&self, kind: &GroupKind) -> bool {
        DoorName::of(kind).is_none_or(|door| self.has(door))
    }
}

impl Default for Doors {
    fn default() -> Self {
        Self(DoorName::ALL.into())
    }
}

impl FromIterator<DoorName> for Doors {
    fn from_iter<I: IntoIterator<Item = DoorName>>(doors: I) -> Self {
        Self(doors.into_iter().collect())
    }
}

impl fmt::Display for Doors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.0.iter().map(|door| door.as_str()).collect();
        formatter.write_str(&words.join(","))
    }
}

impl FromStr for Doors {
    type Err = DoorsError;

    /// Names separated by commas; at least one, for an operator that serves nothing is a mistake.
    fn from_str(text: &str) -> Result<Self, DoorsError> {
        let found = text.split(',').map(str::trim).map(|word| {
            let door = DoorName::ALL.into_iter().find(|door| door.as_str() == word);
            door.ok_or_else(|| DoorsError(word.to_owned()))
        });
        found.collect()
    }
}

/// A text that names no door.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no door: write some of {all}, separated by commas", all = Doors::default())]
pub struct DoorsError(String);

/// Where to listen, in the notation of other operators: `:8080`, `127.0.0.1:8080`, or `0` for not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindAddress {
    /// Not at all.
    Off,
    /// On every interface, IPv4 and IPv6 alike.
    Everywhere(u16),
    /// On one address.
    At(SocketAddr),
}

impl FromStr for BindAddress {
    type Err = BindAddressError;

    fn from_str(text: &str) -> Result<Self, BindAddressError> {
        if text == "0" {
            return Ok(Self::Off);
        }
        let unusable = || BindAddressError(text.to_owned());
        if let Some(port) = text.strip_prefix(':') {
            return port.parse().map(Self::Everywhere).map_err(|_| unusable());
        }
        // Resolves `localhost`; a literal address asks no resolver.
        let mut addresses = text.to_socket_addrs().map_err(|_| unusable())?;
        addresses.next().map(Self::At).ok_or_else(unusable)
    }
}

impl fmt::Display for BindAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => formatter.write_str("0"),
            Self::Everywhere(port) => write!(formatter, ":{port}"),
            Self::At(address) => address.fmt(formatter),
        }
    }
}

/// A text that is no address to listen on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no address to listen on: write :PORT, ADDRESS:PORT, or 0 to switch it off")]
pub struct BindAddressError(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_domain_of_services_is_the_pods_own_unless_it_is_said() {
        let pod = "nameserver 10.96.0.10\nsearch shop.svc.k8s.example svc.k8s.example k8s.example\noptions ndots:5\n";
        let unsaid = ProbeSettings::default();
        assert_eq!(unsaid.domain(pod), "k8s.example");
        assert_eq!(unsaid.domain("search\tshop.svc.a.b svc.a.b\n"), "a.b");
        assert_eq!(unsaid.domain("search lan\n"), "cluster.local");
        let said = ProbeSettings { cluster_domain: Some("a.b".to_owned()), ..unsaid };
        assert_eq!(said.domain(pod), "a.b");
    }

    #[test]
    fn addresses_are_written_as_other_operators_write_them() {
        assert_eq!("0".parse(), Ok(BindAddress::Off));
        assert_eq!(":8081".parse(), Ok(BindAddress::Everywhere(8081)));
        assert_eq!("127.0.0.1:0".parse(), Ok(BindAddress::At(([127, 0, 0, 1], 0).into())));
        assert!("[::1]:80".parse::<BindAddress>().is_ok());
        for wrong in ["", "8081", ":", ":http", ":70000", "127.0.0.1", "1.2.3.4:5:6"] {
            let error = wrong.parse::<BindAddress>().unwrap_err().to_string();
            assert!(error.contains("no address to listen on"), "{wrong}: {error}");
        }
    }

    #[test]
    fn doors_are_named_and_what_is_behind_none_of_them_is_always_served() {
        let one: Doors = "appBundle".parse().unwrap();
        let served = |group: &str, kind: &str| one.serve(&GroupKind::new(group, kind));
        assert!(served("app.example.com", "AppBundle") && served("app.example.com", "BundleRevision"));
        assert!(served("linchpin.dev", "ReadinessProfile"));
        let tools = "tools.kubestellar.io";
        assert!(!served(tools, "ResourceDependency") && !served(tools, "DependencyGroup"));
        assert!(served("fourth.example", "Sync"), "a further kind is called like one of ours");
        assert_eq!(Doors::default().to_string().parse(), Ok(Doors::default()));
        for wrong in ["", "appbundle", "appBundle,", "syncs"] {
            let error = wrong.parse::<Doors>().unwrap_err().to_string();
            assert!(
                error.ends_with(
                    "write some of resourceDependency,appBundle,sync,bootDependency, separated by commas"
                ),
                "{error}"
            );
        }
    }

    #[test]
    fn namespaces_are_a_list_or_all_of_them() {
        assert_eq!("".parse(), Ok(Namespaces::All));
        let two = ["shop", "data-2"].map(str::to_owned).into();
        assert_eq!("shop, data-2".parse(), Ok(Namespaces::Only(two)));
        for wrong in ["shop,,data", "Shop", "-a", "a-", "a.b", &"x".repeat(64)] {
            assert!(wrong.parse::<Namespaces>().is_err(), "{wrong}");
        }
    }
}
