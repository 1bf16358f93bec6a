//! What there is in a Repository, and what the status of a bundle reports of its packages.
//!
//! A revision that was published since the last status is reported in an event too.

use std::collections::BTreeMap;

use linchpin_api::{
    AppBundle,
    app_bundle::status::{ComponentStatus, PackageStatus, RepositoryPackage, RepositoryStatus},
};
use linchpin_engine::{
    contract::{Actor, ClusterRef, Notice, StepId, Verb, Via},
    plan::Plan,
};
use linchpin_words::{Reason, limits, text};

use super::look::{PorchLook, Registered, Revision};
use crate::{app_bundle::outline::BundleOutline, door::SideWrite, names};

/// A Repository with what is in it.
pub(super) type Repository = RepositoryStatus;

/// Lists a Repository.
pub(super) fn list(
    namespace: &str,
    name: &str,
    registered: PorchLook<Option<Registered>>,
    revisions: &[Revision],
) -> RepositoryStatus {
    let mut packages: BTreeMap<&str, Vec<&Revision>> = BTreeMap::new();
    for one in revisions.iter().filter(|one| one.repository == name) {
        packages.entry(&one.package).or_default().push(one);
    }
    let package_count = i64::try_from(packages.len()).unwrap_or(i64::MAX);
    let listed = packages.into_iter().take(limits::PORCH_PACKAGES).map(|(name, mut all)| {
        all.retain(|one| one.is_published());
        all.sort_by(|one, other| other.number.cmp(&one.number).then_with(|| one.name.cmp(&other.name)));
        let revision = |one: &&Revision| {
            if one.number.is_some() { one.text.clone() } else { one.workspace.clone() }
        };
        let revisions = all.iter().take(limits::PORCH_REVISIONS).map(revision).collect();
        RepositoryPackage { name: name.to_owned(), revisions }
    });
    let packages = listed.collect();
    let (ready, message) = match registered {
        PorchLook::Seen(Some(found)) => (found.ready, found.message),
        PorchLook::Seen(None) => (false, "it does not exist".to_owned()),
        PorchLook::Unknown(held, _) | PorchLook::Unserved(held) => (false, held.message),
    };
    RepositoryStatus {
        name: name.to_owned(),
        namespace: namespace.to_owned(),
        ready,
        message: text::line(&message),
        packages,
        package_count,
    }
}

/// Events about revisions that were published since the status was drawn last.
pub(in crate::app_bundle) fn records(object: &AppBundle, plan: Option<&Plan>) -> Vec<SideWrite> {
    let Some(outline) = BundleOutline::of(plan) else { return Vec::new() };
    let known = known(object);
    let news = outline.components().filter_map(|(group, component)| {
        let path = names::component(group, &component.name);
        let (before, now) = (known.get(&path)?, &component.package.as_ref()?.status);
        let same = before.latest_revision == now.latest_revision
            || before.name != now.name
            || before.repository != now.repository;
        (!same && !now.latest_revision.is_empty()).then(|| published(&path, now))
    });
    news.collect()
}

/// The packages of the last status, by component.
fn known(object: &AppBundle) -> BTreeMap<String, &PackageStatus> {
    let groups = object.status.iter().flat_map(|status| &status.group_statuses);
    let component = |group: &str, one: &'_ ComponentStatus| names::component(group, &one.name);
    groups
        .flat_map(|group| group.component_statuses.iter().map(move |one| (&group.name, one)))
        .filter_map(|(group, one)| Some((component(group, one), one.package.as_ref()?)))
        .collect()
}

fn published(path: &str, package: &PackageStatus) -> SideWrite {
    let asked = if package.revision == package.latest_revision {
        "and follows it".to_owned()
    } else {
        format!("and stays with {}", package.revision)
    };
    let message = format!(
        "revision {} of package {} in Repository {} is published; component {path} uses the package {asked}",
        package.latest_revision, package.name, package.repository
    );
    let notice = Notice {
        reason: Reason::RevisionPublished.as_str().to_owned(),
        message: text::line(&message),
        warning: false,
    };
    SideWrite {
        name: StepId::new(format!("published:{path}")),
        via: Via { cluster: ClusterRef::Here, actor: Actor::Operator },
        verb: Verb::Notice(notice),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revisions(packages: usize, each: usize) -> Vec<Revision> {
        let one = |package: usize, number: usize| Revision {
            name: format!("{package}.{number}"),
            repository: "catalog".to_owned(),
            package: format!("p{package:05}"),
            number: u64::try_from(number).ok(),
            text: number.to_string(),
            lifecycle: "Published".to_owned(),
            ..Revision::default()
        };
        (0..packages).flat_map(|package| (1..=each).map(move |number| one(package, number))).collect()
    }

    #[test]
    fn a_status_lists_so_many_packages_and_revisions_and_counts_the_rest() {
        let list = |packages, each| {
            list("own", "catalog", PorchLook::Seen(Some(Registered::default())), &revisions(packages, each))
        };
        for (packages, each) in [
            (limits::PORCH_PACKAGES, limits::PORCH_REVISIONS),
            (limits::PORCH_PACKAGES + 1, limits::PORCH_REVISIONS + 1),
            (limits::PORCH_PACKAGES * 100, 1),
            (1, limits::PORCH_REVISIONS * 100),
        ] {
            let listed = list(packages, each);
            assert_eq!(listed.packages.len(), packages.min(limits::PORCH_PACKAGES));
            assert_eq!(usize::try_from(listed.package_count), Ok(packages));
            assert_eq!(listed.packages[0].revisions.len(), each.min(limits::PORCH_REVISIONS));
            assert_eq!(listed.packages[0].revisions[0], each.to_string(), "the newest come first");
        }
    }
}
