//! A plain blocking client: the people and controllers around the operator.

use std::{path::Path, sync::Arc, thread, time::Duration};

use http::{Method, Request};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::kinds;

/// An API server's "no".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiRefusal {
    /// The HTTP status.
    pub code: u16,
    /// What it says.
    pub message: String,
}

/// Talks to an API server as the user of a kubeconfig.
#[derive(Clone)]
pub struct Api {
    runtime: Arc<Runtime>,
    client: Client,
}

impl Api {
    /// Connects with a kubeconfig.
    pub fn connect(kubeconfig: &Path) -> Self {
        // Fails only if a provider is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let file = Kubeconfig::read_from(kubeconfig).unwrap();
            let mut config =
                Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
            config.read_timeout = Some(Duration::from_secs(30));
            Client::try_from(config).unwrap()
        });
        Self { runtime: Arc::new(runtime), client }
    }

    /// One request.
    pub fn request(
        &self,
        method: &Method,
        path: &str,
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<Value, ApiRefusal> {
        let body = body.map(|body| serde_json::to_vec(body).unwrap()).unwrap_or_default();
        let mut tries = 0;
        loop {
            match self.send(method.clone(), path, content_type, body.clone()) {
                // A pooled connection may be closed in the very moment it is used; what is not a POST may be sent again.
                Err(ApiRefusal { code: 0, .. }) if tries < 8 && *method != Method::POST => {
                    tries += 1;
                    thread::sleep(Duration::from_millis(250));
                }
                answer => return answer,
            }
        }
    }

    fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Vec<u8>,
    ) -> Result<Value, ApiRefusal> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .body(body)
            .unwrap();
        self.runtime.block_on(self.client.request::<Value>(request)).map_err(|error| match error {
            kube::Error::Api(status) => ApiRefusal { code: status.code, message: status.message.clone() },
            other => ApiRefusal { code: 0, message: other.to_string() },
        })
    }

    /// Reads a path, if there is something. Asks again where there was no answer, as from a server that starts anew.
    pub fn read(&self, path: &str) -> Option<Value> {
        let mut tries = 0;
        loop {
            match self.request(&Method::GET, path, "application/json", None) {
                Ok(value) => return Some(value),
                Err(refused) if refused.code == 404 => return None,
                Err(ApiRefusal { code: 0 | 429 | 500..600, .. }) if tries < 20 => {
                    tries += 1;
                    thread::sleep(Duration::from_millis(250));
                }
                Err(refused) => panic!("reading {path}: {refused:?}"),
            }
        }
    }

    /// The object of this kind and name, if there is one.
    pub fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let collection = kinds::collection(&kinds::api_version(kind), kind, namespace);
        self.read(&format!("{collection}/{name}"))
    }

    /// All objects of a kind in a namespace.
    pub fn list(&self, kind: &str, namespace: &str) -> Vec<Value> {
        let collection = kinds::collection(&kinds::api_version(kind), kind, namespace);
        let list = self.read(&collection).unwrap_or_default();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// Applies a manifest, taking over what others hold.
    pub fn apply(&self, manifest: &Value) -> Result<Value, ApiRefusal> {
        let path = format!("{}?fieldManager=test&force=true&fieldValidation=Strict", kinds::place(manifest));
        self.request(&Method::PATCH, &path, "application/apply-patch+yaml", Some(manifest))
    }

    /// Merges something into an object, or into a subresource of it.
    pub fn merge(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        subresource: &str,
        change: &Value,
    ) -> Result<Value, ApiRefusal> {
        let collection = kinds::collection(&kinds::api_version(kind), kind, namespace);
        let path = format!("{collection}/{name}{subresource}");
        self.request(&Method::PATCH, &path, "application/merge-patch+json", Some(change))
    }

    /// Deletes an object; one that is not there is deleted already.
    pub fn delete(&self, kind: &str, namespace: &str, name: &str) {
        let collection = kinds::collection(&kinds::api_version(kind), kind, namespace);
        let path = format!("{collection}/{name}");
        match self.request(&Method::DELETE, &path, "application/json", None) {
            Ok(_) | Err(ApiRefusal { code: 404, .. }) => {}
            Err(refused) => panic!("deleting {path}: {refused:?}"),
        }
    }
}
