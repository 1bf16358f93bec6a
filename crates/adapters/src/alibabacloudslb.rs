//! `alibabacloudslb`: looks at Alibaba Cloud SLB and holds pod operations by what it sees; it writes nothing there.
//!
//! In ACK the cloud controller manager owns load balancers and their real servers. This adapter only says whether a pod is
//! among the servers of its Service's load balancer, which the label `service.k8s.alibaba/loadbalancer-id` names, so a pod's
//! operation waits until the cloud controller manager has taken it out. What is not so yet is pending and looked at again. It
//! has no employer side. Credentials come from the environment; without them every look is trouble that says so, and
//! nothing else is concerned.

mod signature;

use std::{collections::BTreeSet, fmt, fmt::Write as _, time::Duration};

use http::{HeaderName, HeaderValue, Method, StatusCode};
use linchpin_consist::{
    Adapter, AdapterOptions, Batch, Employment, Expected, Item, PodStatuses, PodView, Trouble,
};
use linchpin_words::{Timestamp, keys::consist::ALIBABA_LOAD_BALANCER, text};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::signature::{Signed, Signer};
use crate::client::{Access, ProviderClient, ProviderRequest};

/// Where the API is unless the environment says otherwise.
const ENDPOINT: &str = "slb.aliyuncs.com";

/// Why nothing is ever done by a call.
const NOT_OURS: &str = "the cloud controller manager has not done it yet";

/// What is known of a pod beyond its addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlbTraffic {
    traffic_on: bool,
}

type Server = Item<PodStatuses<SlbTraffic>>;
type On = Employment<Value, Value>;

/// The adapter.
pub struct AlibabaCloudSlb {
    client: ProviderClient,
    key: String,
    secret: String,
    region: String,
    options: AdapterOptions,
}

impl fmt::Debug for AlibabaCloudSlb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlibabaCloudSlb").field("client", &self.client).finish_non_exhaustive()
    }
}

impl AlibabaCloudSlb {
    /// What is usual here: pods are recorded on their Service, and what is pending is looked at every second at first.
    pub fn usual_options() -> AdapterOptions {
        AdapterOptions {
            need_record_employees: true,
            poll: Duration::from_secs(1),
            ..AdapterOptions::default()
        }
    }

    /// An adapter with what the environment says: `ALIYUN_SLB_AK_KEY`, `ALIYUN_SLB_AK_SECRET`, `ALIYUN_SLB_ENDPOINT` and
    /// `ALIYUN_SLB_REGION`.
    pub fn new(
        environment: impl Fn(&str) -> Option<String>,
        access: Access,
        options: AdapterOptions,
    ) -> Result<Self, Trouble> {
        let variable = |name: &str| environment(name).map(|text| text.trim().to_owned()).unwrap_or_default();
        let endpoint = variable("ALIYUN_SLB_ENDPOINT");
        let url = match endpoint.as_str() {
            "" => format!("https://{ENDPOINT}"),
            host if !host.contains("://") => format!("https://{host}"),
            url => url.to_owned(),
        };
        let client = ProviderClient::new("ALIYUN_SLB_ENDPOINT", Access { url, token_file: None, ..access })?;
        let (key, secret) = (variable("ALIYUN_SLB_AK_KEY"), variable("ALIYUN_SLB_AK_SECRET"));
        Ok(Self { client, key, secret, region: variable("ALIYUN_SLB_REGION"), options })
    }

    /// The addresses of a load balancer's servers.
    async fn servers(&self, balancer: &str, now: Timestamp) -> Result<BTreeSet<String>, Trouble> {
        if self.key.is_empty() || self.secret.is_empty() {
            return Err(Trouble::new(
                "alibabacloudslb has no credentials: set ALIYUN_SLB_AK_KEY and ALIYUN_SLB_AK_SECRET for this process",
            ));
        }
        let mut parameters = vec![("LoadBalancerId", balancer)];
        if !self.region.is_empty() {
            parameters.push(("RegionId", &self.region));
        }
        let query = signature::query(&mut parameters);
        let host = self.client.authority();
        let (date, nonce) = (Timestamp::from_second(now.as_second()).to_string(), nonce()?);
        let signed = Signed {
            host: &host,
            action: "DescribeHealthStatus",
            version: "2014-05-15",
            date: &date,
            nonce: &nonce,
            query: &query,
        };
        let authorization = signed.authorization(Signer { key: &self.key, secret: &self.secret });
        let path = format!("/?{query}");
        let mut request = ProviderRequest::new(Method::POST, &path, None);
        request.authorization = Some(&authorization);
        // The connector writes the host.
        for (name, value) in signed.headers().into_iter().skip(1) {
            let value = HeaderValue::try_from(value).map_err(|_| Trouble::new("a header cannot be sent"))?;
            request.headers.insert(HeaderName::from_static(name), value);
        }
        let reply = self.client.ask(request).await?;
        if reply.status != StatusCode::OK {
            let code = reply.body.get("Code").and_then(Value::as_str).unwrap_or("no code");
            let status = reply.status.as_u16();
            return Err(Trouble(format!(
                "DescribeHealthStatus answers {status} ({})",
                text::line_of(code, 80)
            )));
        }
        addresses(&reply.body)
            .ok_or_else(|| Trouble::new("the answer to DescribeHealthStatus has not its shape"))
    }

    fn server(pod: &PodView, traffic_on: bool, in_traffic: Option<bool>) -> Server {
        Item {
            in_traffic,
            ..Item::employee(pod.name.clone(), PodStatuses::of(pod, SlbTraffic { traffic_on }))
        }
    }
}

/// The pods that a load balancer can have.
fn pods(on: &On) -> impl Iterator<Item = &PodView> {
    let views = on.employees.iter().map(|employee| &employee.view);
    views.filter(|pod| !pod.ip.is_empty() && !pod.host_network)
}

/// `ServerIp` of all servers.
fn addresses(body: &Value) -> Option<BTreeSet<String>> {
    let servers = body.pointer("/BackendServers/BackendServer")?.as_array()?;
    servers.iter().map(|server| server.get("ServerIp")?.as_str().map(str::to_owned)).collect()
}

/// Something that is said only once.
fn nonce() -> Result<String, Trouble> {
    let mut bytes = [0_u8; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| Trouble::new("there is no randomness"))?;
    let mut text = String::with_capacity(32);
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

impl Adapter<Value, Value> for AlibabaCloudSlb {
    type EmployerState = Item<Value>;
    type EmployeeState = Server;

    fn controller_name(&self) -> &'static str {
        "alibaba-cloud-slb-controller"
    }

    fn options(&self) -> AdapterOptions {
        self.options.clone()
    }

    async fn expected_employees(&self, on: &On) -> Result<Expected<Server>, Trouble> {
        let server = |pod: &PodView| Self::server(pod, pod.is_lifecycle_ready(), None);
        Ok(pods(on).map(server).collect::<Vec<_>>().into())
    }

    async fn current_employees(&self, on: &On) -> Result<Vec<Server>, Trouble> {
        if on.leaving {
            return Ok(Vec::new());
        }
        let labels = on.employer.pointer("/metadata/labels").and_then(Value::as_object);
        let balancer = labels.and_then(|labels| labels.get(ALIBABA_LOAD_BALANCER)).and_then(Value::as_str);
        let addresses = match balancer.filter(|balancer| !balancer.is_empty()) {
            Some(balancer) => self.servers(balancer, on.now).await?,
            // No load balancer yet: nobody has traffic from it.
            None => BTreeSet::new(),
        };
        let server = |pod: &PodView| {
            let there = addresses.contains(&pod.ip);
            Self::server(pod, there, Some(there))
        };
        Ok(pods(on).map(server).collect())
    }

    async fn create_employees(&self, _on: &On, items: Vec<Server>) -> Result<Batch, Trouble> {
        Ok(Batch::pending(&items, NOT_OURS))
    }

    async fn update_employees(&self, _on: &On, items: Vec<Server>) -> Result<Batch, Trouble> {
        Ok(Batch::pending(&items, NOT_OURS))
    }

    async fn delete_employees(&self, _on: &On, items: Vec<Server>) -> Result<Batch, Trouble> {
        Ok(Batch::pending(&items, NOT_OURS))
    }
}
