//! Asks at the start whether we may do to the Lease what leading takes, so that a missing right is a clear message
//! now and not a standby that cannot take over later.

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::{Api, Client, api::PostParams};

/// The first verb we lack on the Lease, if any.
///
/// `create` is not asked for: it cannot be granted by name and is needed only once.
pub(super) async fn missing(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<Option<&'static str>, kube::Error> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    for verb in ["get", "update"] {
        let attributes = ResourceAttributes {
            group: Some("coordination.k8s.io".into()),
            resource: Some("leases".into()),
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()),
            verb: Some(verb.to_owned()),
            ..ResourceAttributes::default()
        };
        let spec =
            SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
        let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
        let answer = reviews.create(&PostParams::default(), &review).await?;
        if !answer.status.is_some_and(|status| status.allowed) {
            return Ok(Some(verb));
        }
    }
    Ok(None)
}
