//! What the operator itself may do in its cluster: one table, and everything that is made from it.
//!
//! The chart's roles ([`helm`]), `linchpin rbac --operator` ([`manifests`]), `linchpin check` ([`compare`]), the rights
//! that operators under test have, and `docs/rights.md` come from [`TABLE`]. What users direct is done as their own
//! ServiceAccounts and is not here. Access reviews are asked as oneself, which needs no row.
//!
//! To add a right, add a row; the tests of the chart fail for a row that nothing needs.

pub mod compare;
pub mod consist;
pub mod helm;
pub mod manifests;
#[cfg(test)]
mod page;

use crate::settings::{DoorName, Doors};

/// What every object of an installation is called, unless the release has another name.
pub const NAME: &str = "linchpin";
/// The namespace that is meant where none is given.
pub const NAMESPACE: &str = "linchpin-system";

/// Where a right is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RightScope {
    /// In the whole cluster.
    Cluster,
    /// In the namespace of the release.
    Release,
    /// In each tenant's namespace.
    Tenant,
}

/// What a right has to do with our webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForWebhooks {
    /// Nothing.
    No,
    /// It is needed where they are served.
    Served,
    /// It is needed where they are served with a certificate of our own making.
    OwnCertificate,
}

/// A right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RightRow {
    /// The door that needs it; none: the operator needs it whatever it serves.
    pub door: Option<DoorName>,
    /// Where it is given.
    pub scope: RightScope,
    /// Whether, of the scope Cluster, namespaces are enough where only some are watched.
    pub by_namespace: bool,
    /// Whether it is for our webhooks.
    pub webhooks: ForWebhooks,
    /// The API groups; empty text for the core.
    pub groups: &'static [&'static str],
    /// Plurals, with `/status` for a subresource.
    pub resources: &'static [&'static str],
    /// The only objects it is about; none: all.
    pub names: &'static [&'static str],
    /// The verbs.
    pub verbs: &'static [&'static str],
    /// What for.
    pub why: &'static str,
}

const FOLLOW: &[&str] = &["get", "list", "watch", "patch"];
const READ: &[&str] = &["get", "list", "watch"];
const STATUS: &[&str] = &["patch", "update"];

const ANY: RightRow = RightRow {
    door: None,
    scope: RightScope::Cluster,
    by_namespace: false,
    webhooks: ForWebhooks::No,
    groups: &[],
    resources: &[],
    names: &[],
    verbs: &[],
    why: "",
};

const DEPENDENCIES: RightRow = RightRow {
    door: Some(DoorName::ResourceDependency),
    by_namespace: true,
    groups: &["tools.kubestellar.io"],
    ..ANY
};

const BUNDLES: RightRow =
    RightRow { door: Some(DoorName::AppBundle), by_namespace: true, groups: &["app.example.com"], ..ANY };

const SYNCS: RightRow = RightRow { door: Some(DoorName::Sync), groups: &["linchpin.dev"], ..ANY };

const BOOTS: RightRow = RightRow { door: Some(DoorName::BootDependency), ..ANY };

const PROFILES: RightRow = RightRow { groups: &["linchpin.dev"], ..ANY };

/// Every right of the operator's own.
pub const TABLE: &[RightRow] = &[
    RightRow {
        resources: &["resourcedependencies", "dependencygroups"],
        verbs: FOLLOW,
        why: "follow the objects; set and take off our finalizer and annotations",
        ..DEPENDENCIES
    },
    RightRow {
        resources: &["resourcedependencies/status", "dependencygroups/status"],
        verbs: STATUS,
        why: "say how far they are",
        ..DEPENDENCIES
    },
    RightRow {
        resources: &["appbundles"],
        verbs: FOLLOW,
        why: "follow the objects; set and take off our finalizer and annotations",
        ..BUNDLES
    },
    RightRow { resources: &["appbundles/status"], verbs: STATUS, why: "say how far they are", ..BUNDLES },
    RightRow {
        resources: &["bundlerevisions"],
        verbs: &["get", "list", "watch", "create", "patch", "delete"],
        why: "keep the history of bundles, the last ten of each",
        ..BUNDLES
    },
    RightRow {
        resources: &["syncs"],
        verbs: FOLLOW,
        why: "follow the objects; set and take off our finalizer and annotations",
        by_namespace: true,
        ..SYNCS
    },
    RightRow {
        resources: &["syncs/status"],
        verbs: STATUS,
        why: "say how far they are",
        by_namespace: true,
        ..SYNCS
    },
    RightRow {
        resources: &["globaldependencies", "capabilities"],
        verbs: FOLLOW,
        why: "follow the objects; know what is imposed on Syncs, and what the cluster is able to do",
        ..SYNCS
    },
    RightRow {
        resources: &["globaldependencies/status", "capabilities/status"],
        verbs: STATUS,
        why: "say how far they are",
        ..SYNCS
    },
    RightRow {
        by_namespace: true,
        groups: &["core.bootchain-operator.ruicoelho.dev"],
        resources: &["bootdependencies"],
        verbs: FOLLOW,
        why: "follow the objects; set and take off our finalizer and annotations",
        ..BOOTS
    },
    RightRow {
        by_namespace: true,
        groups: &["core.bootchain-operator.ruicoelho.dev"],
        resources: &["bootdependencies/status"],
        verbs: STATUS,
        why: "say how far they are",
        ..BOOTS
    },
    RightRow {
        webhooks: ForWebhooks::Served,
        groups: &["admissionregistration.k8s.io"],
        resources: &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        names: &["linchpin-mutating", "linchpin-validating"],
        verbs: FOLLOW,
        why: "keep the authority of our certificates in our webhook configurations",
        ..BOOTS
    },
    RightRow {
        resources: &["readinessprofiles"],
        verbs: FOLLOW,
        why: "learn when objects of foreign kinds are ready",
        ..PROFILES
    },
    RightRow {
        resources: &["readinessprofiles/status"],
        verbs: STATUS,
        why: "say whether they are understood",
        ..PROFILES
    },
    RightRow {
        groups: &["events.k8s.io", ""],
        resources: &["events"],
        verbs: &["create", "patch"],
        why: "report to people what happened",
        ..ANY
    },
    RightRow {
        groups: &["apiextensions.k8s.io"],
        resources: &["customresourcedefinitions"],
        verbs: READ,
        why: "know which kinds are served, and notice new ones",
        ..ANY
    },
    RightRow {
        groups: &["apiregistration.k8s.io"],
        resources: &["apiservices"],
        verbs: READ,
        why: "know which kinds are served, and notice new ones",
        ..ANY
    },
    RightRow {
        groups: &[""],
        resources: &["namespaces"],
        verbs: READ,
        why: "notice that a namespace goes, so that our finalizers do not hold it",
        ..ANY
    },
    RightRow {
        scope: RightScope::Release,
        groups: &["coordination.k8s.io"],
        resources: &["leases"],
        names: &["linchpin"],
        verbs: &["get", "list", "watch", "update", "patch"],
        why: "elect a leader",
        ..ANY
    },
    RightRow {
        scope: RightScope::Release,
        groups: &["coordination.k8s.io"],
        resources: &["leases"],
        verbs: &["create"],
        why: "elect the first leader: a name cannot be asked for at creation",
        ..ANY
    },
    RightRow {
        scope: RightScope::Release,
        webhooks: ForWebhooks::OwnCertificate,
        groups: &[""],
        resources: &["secrets"],
        names: &["linchpin-webhook-tls"],
        verbs: &["get", "list", "watch", "update"],
        why: "keep the certificate of our webhooks",
        ..BOOTS
    },
    RightRow {
        scope: RightScope::Release,
        webhooks: ForWebhooks::OwnCertificate,
        groups: &[""],
        resources: &["secrets"],
        verbs: &["create"],
        why: "make the first certificate of our webhooks: a name cannot be asked for at creation",
        ..BOOTS
    },
    RightRow {
        scope: RightScope::Tenant,
        groups: &[""],
        resources: &["serviceaccounts"],
        verbs: &["impersonate", "get", "list", "watch"],
        why: "act for the objects of the namespace, as the ServiceAccounts that they name and that exist",
        ..ANY
    },
    RightRow {
        scope: RightScope::Tenant,
        groups: &[""],
        resources: &["pods"],
        verbs: FOLLOW,
        why: "release the pods that our scheduling gate holds, where the namespace has opted in",
        ..BOOTS
    },
    RightRow {
        scope: RightScope::Tenant,
        groups: &["apps"],
        resources: &["deployments", "statefulsets", "daemonsets"],
        verbs: FOLLOW,
        why: "report the state of workloads that pods are held for, and repair their templates, where the namespace has opted in",
        ..BOOTS
    },
    RightRow {
        scope: RightScope::Tenant,
        groups: &["apps"],
        resources: &["replicasets"],
        verbs: READ,
        why: "know which workload a pod belongs to",
        ..BOOTS
    },
    RightRow {
        scope: RightScope::Tenant,
        groups: &["batch"],
        resources: &["jobs"],
        verbs: READ,
        why: "know which workload a pod belongs to",
        ..BOOTS
    },
];

/// The rows of a scope that an operator with these doors needs.
pub fn rows(scope: RightScope, doors: &Doors) -> impl Iterator<Item = &'static RightRow> {
    TABLE.iter().filter(move |row| row.scope == scope && row.door.is_none_or(|door| doors.has(door)))
}

/// Whether the operator may do this in namespaces of tenants, with all doors open.
pub fn of_tenants(group: &str, resource: &str, verb: &str) -> bool {
    TABLE.iter().any(|row| {
        row.scope == RightScope::Tenant
            && row.groups.contains(&group)
            && row.resources.contains(&resource)
            && row.verbs.contains(&verb)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_workloads_of_tenants_only_those_of_the_table_are_read() {
        assert!(of_tenants("apps", "replicasets", "get") && of_tenants("batch", "jobs", "get"));
        assert!(!of_tenants("batch", "cronjobs", "get") && !of_tenants("", "nodes", "get"));
        assert!(!of_tenants("batch", "jobs", "patch"));
    }

    #[test]
    fn no_row_gives_more_than_it_names() {
        for row in TABLE {
            let words = [row.groups, row.resources, row.verbs, row.names].concat();
            assert!(words.iter().all(|word| !word.contains('*')), "{row:?}");
            assert!(!row.groups.is_empty() && !row.resources.is_empty() && !row.verbs.is_empty(), "{row:?}");
            assert!(!row.why.is_empty(), "{row:?}");
            let secrets = row.resources.contains(&"secrets");
            let own = row.scope == RightScope::Release && (!row.names.is_empty() || row.verbs == ["create"]);
            assert!(!secrets || own, "no Secret is read as the operator but its own: {row:?}");
            assert!(!row.by_namespace || row.scope == RightScope::Cluster, "{row:?}");
        }
    }

    #[test]
    fn acting_for_others_is_given_to_tenants_alone() {
        let rows: Vec<_> = TABLE.iter().filter(|row| row.verbs.contains(&"impersonate")).collect();
        assert!(rows.iter().all(|row| row.scope == RightScope::Tenant));
        assert_eq!(rows.len(), 1);
    }
}
