//! Every condition type and every reason, in one place.
//!
//! A [`Reason`] is the CamelCase word that conditions, blockers, per-step entries, events and the journal carry;
//! the sentence behind each is its meaning, shown by `explain` and in the documentation. To add one, add a line.
//! A word that this version does not know (written by a newer one) reads as [`Reason::Unrecognised`], so an older
//! operator can still read a newer journal.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Makes an enum of words from lines `Word: "meaning"`, or `Word: "meaning" => "what to do"`.
macro_rules! words {
    (@remedy) => { None };
    (@remedy $remedy:literal) => { Some($remedy) };
    ($(#[$about:meta])* $name:ident { $($word:ident: $meaning:literal $(=> $remedy:literal)?,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $(#[doc = $meaning] $word,)*
        }

        impl $name {
            /// All of them, in the order they are written down.
            pub const ALL: &[Self] = &[$(Self::$word,)*];

            /// The word itself.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$word => stringify!($word),)* }
            }

            /// What it means, in one line.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$word => $meaning,)* }
            }

            /// What a person can do about it.
            pub const fn remedy(self) -> Option<&'static str> {
                match self { $(Self::$word => words!(@remedy $($remedy)?),)* }
            }

            /// What it means, as part of a longer sentence: "the spec cannot be understood".
            pub fn in_words(self) -> String {
                let sentence = self.meaning().trim_end_matches('.');
                let (first, rest) = sentence.split_at(1);
                if rest.starts_with(|second: char| second.is_uppercase()) {
                    sentence.to_owned()
                } else {
                    first.to_lowercase() + rest
                }
            }

            /// The one that is written so.
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == word)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// What a condition of ours is about: the three that kstatus, and so `kubectl wait`, Helm, Flux and Argo, know, and a
    /// Sync's own.
    ConditionType {
        Ready: "Everything the object asks for is done and holds.",
        Reconciling: "The object is not done yet and work or waiting goes on.",
        Stalled: "The object cannot go on without somebody changing something.",
        DependenciesReady: "Everything that a Sync depends on is in the state it relies on.",
        SourceReady: "The source of a Sync was read.",
        Linked: "Everything that a Sync depends on is provided by something, ready or not.",
        EnvironmentReady: "Every capability that a Sync needs is there.",
        DependencyCycle: "The Sync waits for itself, through others.",
        DeletionBlocked: "The Sync is being deleted and is held by those that use it, or by a dependency that gates its deletion.",
        RequirementViolated: "A dependency of an applied Sync is no longer at a version that it needs: nothing is done about it.",
    }
}

words! {
    /// Why something is as it is.
    Reason {
        // How far an object or a step is.
        Progressing: "Work is going on." => "Nothing.",
        Waiting: "What must be there first is not there yet." => "Nothing, or ask why: linchpin explain.",
        Running: "The actions are being carried out." => "Nothing.",
        Completed: "Everything is done." => "Nothing.",
        Deployed: "Everything of the bundle is deployed and ready." => "Nothing.",
        SourceRead: "The source was read." => "Nothing.",
        DeploymentComplete: "All resources of the bundle are deployed and ready." => "Nothing.",
        AllDependenciesReady: "Everything that pods wait for is there." => "Nothing.",
        DependenciesNotReady: "Something that pods wait for is not there yet." => "Nothing, or ask why: linchpin explain.",
        Met: "The dependency is in the state that is required." => "Nothing.",
        Skipped: "The step's condition is false, so it was left out." => "Nothing, or correct the condition.",
        Exists: "The object was there already and was left as it is." => "Nothing. To change what is there, use an action of type apply, or onExisting: Adopt.",
        CreatedBefore: "The action made the object earlier and left it as it is: create changes nothing, use apply." => "To change the object, use an action of type apply.",
        Proceeded: "Somebody let this gate pass by hand." => "Nothing: the gate counts again with the next generation.",
        SoftBroken: "A soft dependency was waited for long enough, and was passed by." => "Nothing, or mend the dependency: its state is still shown.",
        Suspended: "The object is suspended: nothing starts and no clock runs." => "linchpin resume lets it go on.",
        Deleting: "The object is being deleted and takes its own things down first." => "Nothing. If it stays, the message says what keeps it.",
        LeftBehind: "Something we created could not be deleted and was left where it is." => "Delete what the message names by hand, if it is not wanted.",
        TakenBack: "The object does not carry our mark, so it is not ours to delete." => "Delete it by hand, or put the annotation linchpin.dev/created-by back.",
        Drifted: "What was written is no longer as it was written, and is written again." => "Nothing: it is put right. To let others have a field, name it in ignoreFields.",
        FieldsYielded: "Others hold fields of the object that are left to them." => "To take a field back, write another value to it with kubectl patch once: what an ordinary writer holds is taken back.",
        Recreating: "A field cannot be changed in place, so the object is deleted and made anew." => "Nothing: it waits until the old object is gone.",
        RolledBack: "An earlier revision is deployed, and the spec is not." => "linchpin rollback ab/NAME --undo deploys the spec again.",
        RevisionPublished: "A new revision of a package was published." => "Nothing.",

        // What a dependency lacks.
        NotFound: "The object does not exist." => "Make it, or correct kind, name or namespace: linchpin explain says what is called almost so.",
        NotReady: "The object exists and is not ready." => "Look at the object: linchpin explain goes on to the pod or claim that is the cause.",
        Failed: "The object has failed." => "Mend the object; what waits for it goes on by itself.",
        Terminating: "The object is being deleted, so it counts as neither there nor gone." => "Wait, or look at the finalizers that the object has.",
        NoEndpoints: "No endpoint of the Service is ready." => "Look at the pods that the Service selects.",
        PortNotFound: "The Service has no such port." => "Correct the port.",
        StaleGeneration: "The object's controller has not yet looked at its latest change." => "Nothing. If it stays, look whether that controller runs.",
        ConditionNotMet: "A condition or expression on the object does not hold." => "Nothing, or correct the condition: the message says what was found.",
        CountNotMet: "Too few or too many objects match the selector." => "Correct the selector or expect, or make the objects.",
        AwaitingAbsence: "The object still exists and must be gone first." => "Delete the object, or wait until it is gone.",
        ValueMissing: "A value that is read does not exist yet." => "Make the value, or correct the path.",
        TimedOut: "It was not there within its timeout." => "Mend the dependency: it recovers by itself once it is there, unless recovery is Manual (linchpin refresh).",
        ProgressTimeout: "It has made no progress within its progress timeout." => "As with TimedOut.",
        GlobalTimeout: "The whole object was not done within its global timeout." => "As with TimedOut.",
        DependencyFailed: "A required dependency has failed or timed out." => "Mend the dependency.",
        DependencyLost: "A dependency that held before holds no longer." => "Look at the dependency that the message names.",

        DependencyNotReady: "A dependency of a Sync is not in the state that it relies on." => "Nothing, or ask why: linchpin explain.",
        VersionNotMet: "A dependency has a version outside of the range that is needed." => "Update the dependency, or widen the range.",
        VersionUnknown: "A dependency has no version that can be compared with the range." => "Give it a version: spec.version of a Sync, or the label app.kubernetes.io/version.",
        RevisionNotMet: "A dependency of the same source has not applied this revision yet." => "Nothing: it goes on when the dependency has applied it.",
        ExportMissing: "A Sync has no such export, or its object is not among those it applies." => "Correct the name, or declare the export in the other Sync.",
        CapabilityMissing: "Nothing in the cluster provides a capability that is needed." => "Install what provides it, or have its Capability object made: it is never installed for you.",
        CapabilityLost: "A capability that was there is gone." => "As with CapabilityMissing; what runs is left as it is.",
        BlockedByCycle: "What is waited for waits for itself in a circle." => "Break the circle: the members say which it is.",
        NothingProvides: "Nothing provides a dependency, not even in principle." => "Make it, let a Sync apply it, or correct the reference.",
        InUse: "Others that are applied depend on it." => "Delete them first, or pass it with linchpin.dev/proceed: in-use@GENERATION.",
        DriftHeld: "An object has drifted that a held update changes: it is left until that is admitted." => "Nothing, or see to what holds the update: linchpin explain says what.",
        NoDependencies: "The Sync depends on nothing." => "Nothing.",
        AllLinked: "Everything is provided by something." => "Nothing.",

        // What cannot be seen.
        Unsynced: "The first list of these objects has not arrived yet." => "Nothing. If it stays, look at the operator's log.",
        Disconnected: "The connection is down, so what is known may be old." => "Look at the API server, or at the network to it.",
        OwnWriteNotSeen: "Our own last write has not come back through the watch yet." => "Nothing. If it stays, look at the API server, or at the network to it.",
        Evaluating: "There is more to evaluate than one turn may, and the rest follows in the next turns." => "Nothing.",
        KindNotServed: "The API server does not serve this kind now." => "Install the definition of the kind, or correct the word.",
        AmbiguousKind: "The word names several kinds; the group must be written too." => "Write the group too: kind.group/name.",
        Forbidden: "The ServiceAccount is not allowed to do this." => "Give the ServiceAccount the right: linchpin rbac prints the smallest Role.",
        MissingRights: "The ServiceAccount lacks rights that the object will need." => "Give the ServiceAccount the rights: linchpin rbac prints the smallest Role.",
        IdentityGone: "The ServiceAccount does not exist." => "Make the ServiceAccount, or name another one in serviceAccountName.",
        NotATenant: "The operator may not act for ServiceAccounts of this namespace." => "Bind the tenant role as the message says.",
        ClusterPending: "The other cluster's kubeconfig is not there yet." => "Make the Secret with the kubeconfig, or the ControlPlane.",
        ClusterUnreachable: "The other cluster does not answer." => "Look at the other cluster, its address and its certificate.",
        OverBudget: "The namespace has used up its budget of watches, objects, bytes or questions, or one evaluation takes more than a turn may." => "Use fewer or narrower selectors and expressions, or several namespaces.",
        TooLarge: "Something is larger than its limit." => "Make it smaller: limits.md lists every limit.",

        // What a probe found.
        Refused: "Nobody listens at that port." => "Look whether the server runs and listens at that port.",
        NameNotFound: "The name leads to no address." => "Correct the host, or look at the DNS that the operator asks.",
        Unreachable: "There is no way to the address." => "Correct the host or port, or let the network through: a NetworkPolicy or firewall may be in the way.",
        TlsFailed: "The server did not prove who it is." => "Name its authority (caBundleSecretRef, caBundleConfigMapRef) or its name (serverName), or correct the certificate.",
        HttpStatus: "The server answered with a status that does not count." => "Mend the server, or name the status that counts.",
        BadAnswer: "What the server answered is not HTTP." => "Correct the port, or the scheme: http and https are not the same.",
        ProbeDenied: "The operator's rules forbid this probe." => "Use another address or method, or ask the operator's administrator: --probe-allow, --probe-methods.",

        // What an action waits for.
        WaitingForTier: "Dependencies of a lower priority must hold first." => "Nothing: look at what the lower priorities wait for.",
        WaitingForGroup: "A group that this one depends on must be met first." => "Nothing: look at what that group waits for.",
        WaitingForStep: "An earlier action must be done first." => "Nothing: look at the action that the message names.",
        GuardUndecided: "The action's condition cannot be decided while its dependency is still changing." => "Nothing: it is decided when its dependency has settled.",
        GuardTimedOut: "The action's condition could not be decided in time." => "As with TimedOut.",
        GuardFalse: "The action's condition is false." => "Nothing, or correct the condition.",
        Retrying: "The last attempt failed and the next one comes after a pause." => "Nothing, or mend what the message names: linchpin refresh tries at once.",
        Throttled: "The API server asked for patience." => "Nothing: it is tried again when the server said.",
        ForeignFinalizer: "Somebody else's finalizer keeps the object from going away." => "Look for who set the finalizer, and why it does not remove it.",

        // How an action failed.
        DeploymentFailed: "A component of the bundle could not be deployed." => "Look at the component that the message names.",
        ActionFailed: "An action has failed." => "Look at the action that the message names.",
        AlreadyExists: "The object exists already and the action says to fail on that." => "Delete the object, or set onExisting to Skip or Adopt.",
        ApplyConflict: "Another field manager holds a field that is to be written." => "Let the other writer give the field up, or leave it out.",
        Invalid: "The API server refused the object as invalid." => "Correct the object: the message is the server's own.",
        ImmutableField: "A field of the object cannot be changed in place." => "Delete the object, or set immutable: Recreate on the component.",
        RenderFailed: "The template could not be rendered." => "Correct the template: the message says where.",
        OutcomeUnknown: "Whether the action took place cannot be known; it is not repeated by itself." => "Look whether it took place; linchpin rerun runs it again.",

        // What is wrong with the object itself.
        SpecInvalid: "The spec cannot be understood." => "Correct the field that the message names.",
        Cycle: "Objects wait for each other in a circle." => "Take one of the waits out: the message spells the circle out.",

        // What is wrong with a source.
        HostNotAllowed: "The host of the source is not among those that the administrator allows." => "Use another host, or ask the operator's administrator: --source-hosts.",
        AddressDenied: "The host of the source leads to an address that is never connected to." => "Use another host, or ask the operator's administrator: --probe-allow.",
        Unauthorized: "The server of the source wants other credentials." => "Correct the Secret that the source names: the server refused what is in it.",
        SourceNotFound: "The source does not exist." => "Make it, or correct its name, URL or tag.",
        FetchFailed: "The source could not be fetched; it is tried again." => "Nothing, or look at the server that the message names.",
        DigestMismatch: "What was fetched does not have the digest that is asked for." => "Correct the digest, or find out who changed what is served.",
        ArchiveUnsafe: "The archive holds something that would reach outside of it." => "Make the archive anew, without links, devices and names that lead out of it.",
        ArchiveInvalid: "The archive cannot be read." => "Correct what is served: a tar archive, gzipped or not.",
        PathNotFound: "A path of the source finds no manifest." => "Correct the path.",
        ManifestInvalid: "A manifest of the source is not an object." => "Correct the manifest: the message says where.",
        SourceUnsupported: "The source must be rendered by another tool first." => "Render it before (kustomize build, helm template), and serve the manifests.",
        SourceEmpty: "The source has no objects." => "Put objects into it, or set allowEmpty.",

        // How far an employment of consist is.
        Synced: "What is there is as it should be: all is carried out, and ready." => "Nothing.",
        Syncing: "The provider is being looked at or changed." => "Nothing.",
        ProviderUnreachable: "The provider does not answer, or not with something that can be used: nothing is detached or released." => "Look at the provider; linchpin.dev/proceed: clean on the employer releases it without the provider.",
        AlreadyServed: "Another adapter serves this employer." => "Choose one with the label linchpin.dev/adapter on the employer.",

        // Of other versions.
        Unrecognised: "A reason that this version does not know." => "Ask with the version that wrote it.",
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Reason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        Ok(Self::from_word(&word).unwrap_or(Self::Unrecognised))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_a_word_kubernetes_accepts_and_says_what_it_means_and_what_to_do() {
        for reason in Reason::ALL {
            let word = reason.as_str();
            assert!(word.starts_with(|c: char| c.is_ascii_uppercase()), "{word}");
            assert!(word.len() <= 64 && word.chars().all(|c| c.is_ascii_alphanumeric()), "{word}");
            assert!(reason.meaning().ends_with('.'), "{word} ends its sentence");
            assert!(
                reason.remedy().is_some_and(|remedy| remedy.ends_with('.')),
                "{word} says what to do, and ends it"
            );
        }
    }

    #[test]
    fn a_meaning_can_be_part_of_a_longer_sentence() {
        assert_eq!(Reason::SpecInvalid.in_words(), "the spec cannot be understood");
    }

    #[test]
    fn every_reason_survives_a_journal() {
        for reason in Reason::ALL {
            let text = serde_json::to_string(reason).unwrap();
            assert_eq!(serde_json::from_str::<Reason>(&text).unwrap(), *reason);
        }
    }

    #[test]
    fn a_newer_versions_reason_does_not_make_a_journal_unreadable() {
        assert_eq!(serde_json::from_str::<Reason>("\"BeamedUp\"").unwrap(), Reason::Unrecognised);
    }
}
