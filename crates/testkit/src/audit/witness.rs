//! What an operator must not do, judged from the API server's own record.
//!
//! * As itself it does only what [`Event::is_the_operators_own`] lists, and it writes nobody's `spec`.
//! * As somebody else it acts as ServiceAccounts only, in no other groups than the server gives them.
//! * A request that names its field manager is directed by the object of ours that the manager names: it is made as the
//!   account which that object names, in that object's own namespace. An account that was replaced is not used any
//!   more once the operator has reported the newer generation.
//! * Any other change (a deletion, a command) is made as an account that an object of ours in the account's own
//!   namespace names, and a read as one that such an object has named.
//!
//! Which accounts objects of ours name is read from the log too: of our kinds it holds every object that was written.
//! The log of a cluster is read once and judged as it grows, however many tests share the cluster.

use std::{
    collections::HashMap,
    fmt,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::{LazyLock, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::{
    Event,
    line::{AuditObject, Line},
};
use crate::kinds;

/// What every field manager that names an object of ours begins with, as a URI has it.
const MANAGER: &str = "fieldManager=linchpin%3A";

/// The account of objects that name none.
const DEFAULT_ACCOUNT: &str = "default";

/// How long an object may be missing in the log that directs a request: its line is written after the answer to who
/// wrote it is ready, and by then the operator may have seen the object and acted.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request that an operator must not have made.
#[derive(Clone, PartialEq, Eq)]
pub struct Accusation {
    /// The request.
    pub event: Event,
    /// Which rule it breaks.
    pub why: String,
}

impl fmt::Debug for Accusation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.why, self.event)
    }
}

/// A ServiceAccount.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Account {
    namespace: String,
    name: String,
}

/// An object of ours: its kind as paths call it, its namespace and its name.
type Place = (String, String, String);

/// One version of an object of ours.
#[derive(Debug)]
struct Version {
    from: String,
    uid: String,
    generation: i64,
    account: Account,
    /// When the operator had reported a newer generation of this object, or another one of this name.
    replaced: Option<String>,
}

impl Version {
    /// Whether the object may direct something as this account at that moment.
    fn allows(&self, account: &Account, moment: &str) -> bool {
        self.account == *account
            && self.from.as_str() <= moment
            && self.replaced.as_deref().is_none_or(|replaced| moment <= replaced)
    }
}

/// The judge of one log.
#[derive(Debug, Default)]
struct Witness {
    read: u64,
    objects: HashMap<Place, Vec<Version>>,
    /// Accounts that objects of ours have named, each with when the first one did.
    named: HashMap<Account, String>,
    /// Requests that no object in the log allows so far.
    open: Vec<Event>,
    found: Vec<Accusation>,
    reported: usize,
}

static WITNESSES: LazyLock<Mutex<HashMap<PathBuf, Witness>>> = LazyLock::new(Mutex::default);

/// All that is to be said about the log of an API server, from its beginning on.
pub(super) fn accusations(log: &Path) -> Vec<Accusation> {
    with_witness(log, |witness| {
        witness.reported = witness.found.len();
        witness.found.clone()
    })
}

/// The same without what has been reported before.
pub(super) fn new_accusations(log: &Path) -> Vec<Accusation> {
    with_witness(log, |witness| {
        let new = witness.found.split_off(witness.reported.min(witness.found.len()));
        witness.found.extend(new.iter().cloned());
        witness.reported = witness.found.len();
        new
    })
}

fn with_witness<T>(log: &Path, then: impl FnOnce(&mut Witness) -> T) -> T {
    let begun = Instant::now();
    loop {
        let mut witnesses = WITNESSES.lock().unwrap_or_else(PoisonError::into_inner);
        let witness = witnesses.entry(log.to_owned()).or_default();
        witness.go_on(log);
        let late = begun.elapsed() > PATIENCE;
        if witness.open.is_empty() || late {
            witness.close(late);
            return then(witness);
        }
        drop(witnesses);
        thread::sleep(Duration::from_millis(100));
    }
}

impl Witness {
    /// Reads what the log has got since.
    fn go_on(&mut self, log: &Path) {
        let mut file = File::open(log).unwrap();
        file.seek(SeekFrom::Start(self.read)).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        // A line that is being written is left for the next time.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        self.read += u64::try_from(whole).unwrap();
        for line in String::from_utf8_lossy(&bytes[..whole]).lines() {
            match Line::read(line) {
                Some(line) => self.take(line),
                None => panic!("a line of the audit log cannot be read: {line:.500}"),
            }
        }
        let open = std::mem::take(&mut self.open);
        self.open = open.into_iter().filter(|event| self.unfounded(event).is_some()).collect();
    }

    /// Gives up waiting for objects that would allow what is open.
    fn close(&mut self, late: bool) {
        if late {
            for event in std::mem::take(&mut self.open) {
                let why = self.unfounded(&event).unwrap_or_default();
                self.found.push(Accusation { event, why });
            }
        }
    }

    fn take(&mut self, line: Line) {
        self.learn(&line);
        let Line { event, groups, sent, .. } = line;
        if !event.is_by_operator() {
            return;
        }
        let why = match &event.acting_as {
            None => as_itself(&event, sent.is_some_and(|sent| sent.spec.is_some())),
            Some(user) => match account(user) {
                None => Some(format!("{user} is no ServiceAccount")),
                Some(account) => strange_group(&account, &groups),
            },
        };
        match why {
            Some(why) => self.found.push(Accusation { event, why }),
            None if event.acting_as.is_some() => self.open.push(event),
            None => {}
        }
    }

    /// Remembers which account an object of ours names, and which generation the operator has reported.
    fn learn(&mut self, line: &Line) {
        let event = &line.event;
        let directs = event.is_about_ours() && event.resource != "bundlerevisions";
        let Some(AuditObject { metadata, .. }) =
            line.returned.as_ref().filter(|_| directs && event.is_write())
        else {
            return;
        };
        let place = (event.resource.clone(), metadata.namespace.clone(), metadata.name.clone());
        if event.subresource == "status" && event.is_by_operator() {
            let reported = line
                .sent
                .as_ref()
                .and_then(|sent| sent.status.as_ref())
                .map_or(0, |status| status.observed_generation);
            for version in self.objects.entry(place).or_default() {
                let newer = version.uid != metadata.uid || version.generation < reported;
                if newer && version.replaced.is_none() && version.from < event.received {
                    version.replaced = Some(event.written.clone());
                }
            }
            return;
        }
        let Some(account) = line.returned.as_ref().and_then(named) else { return };
        let since = self.named.entry(account.clone()).or_insert_with(|| event.received.clone());
        if event.received < *since {
            since.clone_from(&event.received);
        }
        let versions = self.objects.entry(place).or_default();
        let is_it =
            |version: &Version| version.uid == metadata.uid && version.generation == metadata.generation;
        if !versions.iter().any(is_it) {
            let (from, uid) = (event.received.clone(), metadata.uid.clone());
            versions.push(Version { from, uid, generation: metadata.generation, account, replaced: None });
        }
    }

    /// Why nothing in the log allows a request as somebody else; none if something does.
    fn unfounded(&self, event: &Event) -> Option<String> {
        let account = account(event.acting_as.as_deref()?)?;
        let moment = event.received.as_str();
        let Account { namespace, name } = &account;
        if let Some((kind, place)) = director(&event.uri) {
            let (own, object) = place.split_once('/').unwrap_or(("", &place));
            if own != namespace {
                return Some(format!("{kind} {place} directs it, as an account of namespace {namespace}"));
            }
            let key = (kinds::plural(&kind), own.to_owned(), object.to_owned());
            let allowed = self
                .objects
                .get(&key)
                .is_some_and(|all| all.iter().any(|version| version.allows(&account, moment)));
            return (!allowed).then(|| format!("{kind} {place} does not name the account {name}"));
        }
        let changes = event.is_change();
        let allowed = if changes {
            self.objects.values().flatten().any(|version| version.allows(&account, moment))
        } else {
            self.named.get(&account).is_some_and(|since| since.as_str() <= moment)
        };
        (!allowed).then(|| format!("no object of ours in namespace {namespace} names the account {name}"))
    }
}

/// What is wrong with a request of the operator's own.
fn as_itself(event: &Event, sends_spec: bool) -> Option<String> {
    // An API server that has just begun knows no rights: a request as somebody else is refused before it becomes one.
    if event.message.contains("cannot impersonate") {
        return None;
    }
    if !event.is_the_operators_own() {
        return Some("nothing that the operator does as itself".to_owned());
    }
    let writes_spec = sends_spec && event.is_about_ours() && event.resource != "bundlerevisions";
    writes_spec.then(|| "the operator writes the spec of an object".to_owned())
}

/// A group that the server does not give to this account by itself.
fn strange_group(account: &Account, groups: &[String]) -> Option<String> {
    let own = format!("system:serviceaccounts:{}", account.namespace);
    let given = ["system:serviceaccounts", "system:authenticated", &own];
    let strange = groups.iter().find(|group| !given.contains(&group.as_str()))?;
    Some(format!("as a member of group {strange}"))
}

/// The ServiceAccount of a user name.
fn account(user: &str) -> Option<Account> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    Some(Account { namespace: namespace.to_owned(), name: name.to_owned() })
}

/// The account that an object of ours acts as; none for what is no such object.
fn named(object: &AuditObject) -> Option<Account> {
    let spec = object.spec.as_ref()?;
    if object.metadata.namespace.is_empty() {
        let account = spec.service_account.as_ref()?;
        return Some(Account { namespace: account.namespace.clone(), name: account.name.clone() });
    }
    let name = spec.service_account_name.clone().unwrap_or_else(|| DEFAULT_ACCOUNT.to_owned());
    Some(Account { namespace: object.metadata.namespace.clone(), name })
}

/// The object that a field manager names, as kind and place; none for a manager that was cut short in the name.
fn director(uri: &str) -> Option<(String, String)> {
    let (_, manager) = uri.split_once(MANAGER)?;
    let manager = manager.split('&').next()?.replace("%3A", ":").replace("%2F", "/");
    let mut parts = manager.splitn(3, ':');
    let (kind, place, _step) = (parts.next()?, parts.next()?, parts.next()?);
    Some((kind.to_owned(), place.to_owned()))
}
