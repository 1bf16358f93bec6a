//! The hands of the demonstration: manifests applied, statuses played, and everything taken away again.
//!
//! What is done here is what a user would do with kubectl; the operator does the rest by itself.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use k8s_openapi::{
    api::{
        admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
        core::v1::{Namespace, Secret},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams},
    core::{DynamicObject, GroupVersionKind},
    discovery::{Scope, pinned_kind},
};
use linchpin_lang::template::parse_documents;
use linchpin_operator::webhooks::SECRET;
use linchpin_words::keys;
use serde_json::{Value, json};

/// Who we are in the API server's books.
const MANAGER: &str = "linchpin-demo";
/// The mark of the namespace we made.
const MARK: &str = "linchpin.dev/demo";
/// The prefix of the names of webhook configurations.
pub(super) const WEBHOOKS: &str = "linchpin-demo";
/// How long the API server may take for what it does by itself.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(100);

/// Hands that work in one namespace.
pub(super) struct DemoClient {
    client: Client,
    /// The namespace that `shop` is called here.
    pub(super) namespace: String,
    /// Definitions that were not there before.
    made: Vec<String>,
    /// Where the operator's certificate will be, if there was none before.
    certificate: Option<String>,
}

impl DemoClient {
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        Self { client, namespace: namespace.to_owned(), made: Vec::new(), certificate: None }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Makes sure that there is nothing of an earlier demonstration, and nothing of anybody else's to lose.
    pub(super) async fn clear(&self) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let Some(found) =
            namespaces.get_opt(&self.namespace).await.context("looking for an earlier demonstration")?
        else {
            return Ok(());
        };
        if !found.metadata.labels.is_some_and(|labels| labels.contains_key(MARK)) {
            bail!("there is a namespace {} that is not of a demonstration: it is left alone", self.namespace);
        }
        namespaces
            .delete(&self.namespace, &DeleteParams::default())
            .await
            .context("ending an earlier demonstration")?;
        let begun = Instant::now();
        while namespaces.get_opt(&self.namespace).await?.is_some() {
            if begun.elapsed() > PATIENCE {
                bail!("namespace {} of an earlier demonstration does not go away", self.namespace);
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Looks whether the operator's namespace has a certificate of webhooks already, which is then not ours to take away.
    pub(super) async fn look_for_certificate(&mut self, namespace: &str) -> Result<()> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let found = secrets.get_opt(SECRET).await.context("looking for a certificate of webhooks")?;
        self.certificate = found.is_none().then(|| namespace.to_owned());
        Ok(())
    }

    /// Installs definitions and waits until their kinds are served.
    pub(super) async fn define(&mut self, definitions: Vec<CustomResourceDefinition>) -> Result<()> {
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        for definition in definitions {
            let name = definition.metadata.name.clone().unwrap_or_default();
            let there = api.get_opt(&name).await.with_context(|| format!("looking for {name}"))?;
            let parameters = PatchParams::apply(MANAGER).force();
            let patched = api.patch(&name, &parameters, &Patch::Apply(&typed(&definition)?)).await;
            patched.with_context(|| format!("installing {name}"))?;
            if there.is_none() {
                self.made.push(name.clone());
            }
            self.established(&api, &name).await?;
        }
        Ok(())
    }

    async fn established(&self, api: &Api<CustomResourceDefinition>, name: &str) -> Result<()> {
        let begun = Instant::now();
        loop {
            let conditions = api.get(name).await?.status.and_then(|status| status.conditions);
            let is_established = |one: &_| matches!(one, k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionCondition { type_, status, .. } if type_ == "Established" && status == "True");
            if conditions.is_some_and(|conditions| conditions.iter().any(is_established)) {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                bail!("{name} is not served after {PATIENCE:?}");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Applies all documents of a manifest.
    pub(super) async fn apply(&mut self, manifest: &str) -> Result<()> {
        for document in self.documents(manifest)? {
            if document["kind"] == "CustomResourceDefinition" {
                let definition =
                    serde_json::from_value(document).context("reading a definition of the story")?;
                self.define(vec![definition]).await?;
            } else {
                let (api, name) = self.api(&document).await?;
                let parameters = PatchParams::apply(MANAGER).force();
                let applied = api.patch(&name, &parameters, &Patch::Apply(&document)).await;
                applied.with_context(|| format!("applying {} {name}", document["kind"]))?;
            }
        }
        Ok(())
    }

    /// Plays the controller of an object: writes its status.
    pub(super) async fn play(&self, manifest: &str) -> Result<()> {
        for document in self.documents(manifest)? {
            let (api, name) = self.api(&document).await?;
            let body = json!({"status": document["status"]});
            let patched = api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&body)).await;
            patched.with_context(|| format!("writing the status of {} {name}", document["kind"]))?;
        }
        Ok(())
    }

    /// One text field of an object, if both are there.
    pub(super) async fn read(&self, kind: &str, name: &str, path: &str) -> Result<Option<String>> {
        let (api, _) = self
            .api(&json!({"apiVersion": "v1", "kind": kind,
            "metadata": {"name": name, "namespace": self.namespace}}))
            .await?;
        let found = api.get_opt(name).await.with_context(|| format!("reading {kind} {name}"))?;
        Ok(found.and_then(|object| Some(object.data.pointer(path)?.as_str()?.to_owned())))
    }

    /// Deletes an object of the namespace and waits until it is gone.
    pub(super) async fn delete(&self, kind: &str, name: &str) -> Result<()> {
        let (api, _) =
            self.api(&json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}})).await?;
        let begun = Instant::now();
        loop {
            gone(api.delete(name, &DeleteParams::default().grace_period(0)).await.map(|_| ()))
                .with_context(|| format!("deleting {kind} {name}"))?;
            if api.get_opt(name).await?.is_none() {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                bail!("{kind} {name} does not go away");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Takes away the configurations of our webhooks, and their certificate.
    async fn remove_webhooks(&self) -> Result<()> {
        let parameters = DeleteParams::default();
        let mutating: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
        gone(mutating.delete(&format!("{WEBHOOKS}-mutating"), &parameters).await.map(|_| ()))
            .context("deleting the webhooks")?;
        gone(validating.delete(&format!("{WEBHOOKS}-validating"), &parameters).await.map(|_| ()))
            .context("deleting the webhooks")?;
        let Some(namespace) = &self.certificate else { return Ok(()) };
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        gone(secrets.delete(SECRET, &parameters).await.map(|_| ())).context("deleting the certificate")
    }

    /// Takes away what was made, the namespace first. The rest of its contents go by themselves.
    pub(super) async fn clean_up(&self) -> Result<()> {
        let parameters = DeleteParams::default();
        self.remove_webhooks().await?;
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        gone(namespaces.delete(&self.namespace, &parameters).await.map(|_| ()))
            .with_context(|| format!("deleting namespace {}", self.namespace))?;
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        for name in &self.made {
            gone(definitions.delete(name, &parameters).await.map(|_| ()))
                .with_context(|| format!("deleting {name}"))?;
        }
        Ok(())
    }

    /// The documents of a manifest of the story, moved to our namespace.
    fn documents(&self, manifest: &str) -> Result<Vec<Value>> {
        let moved = manifest.replace("namespace: shop", &format!("namespace: {}", self.namespace));
        let mut documents =
            parse_documents("the story", &moved).map_err(|error| anyhow!("{}", error.message()))?;
        for document in &mut documents {
            if document["kind"] == "Namespace" {
                document["metadata"] = json!({"name": self.namespace, "labels": {MARK: "true", (keys::BOOT): keys::BOOT_ENABLED}});
            }
        }
        Ok(documents)
    }

    /// Where an object is written, and its name. A kind that was just defined may take a moment to be found.
    async fn api(&self, document: &Value) -> Result<(Api<DynamicObject>, String)> {
        let text = |path: &str| document.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (version, kind) = (text("/apiVersion"), text("/kind"));
        let (group, version) = version.split_once('/').unwrap_or(("", &version));
        let gvk = GroupVersionKind::gvk(group, version, &kind);
        let begun = Instant::now();
        let (resource, capabilities) = loop {
            match pinned_kind(&self.client, &gvk).await {
                Ok(found) => break found,
                Err(_) if begun.elapsed() < PATIENCE => tokio::time::sleep(PAUSE).await,
                Err(error) => return Err(error).with_context(|| format!("looking for kind {kind}")),
            }
        };
        let api = match capabilities.scope {
            Scope::Namespaced => Api::namespaced_with(self.client.clone(), &self.namespace, &resource),
            Scope::Cluster => Api::all_with(self.client.clone(), &resource),
        };
        Ok((api, text("/metadata/name")))
    }
}

/// A definition with its kind written on it, as server-side apply wants it.
fn typed(definition: &CustomResourceDefinition) -> Result<Value> {
    let mut value = serde_json::to_value(definition).context("writing a definition")?;
    value["apiVersion"] = json!("apiextensions.k8s.io/v1");
    value["kind"] = json!("CustomResourceDefinition");
    Ok(value)
}

fn gone(result: kube::Result<()>) -> kube::Result<()> {
    match result {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other,
    }
}
