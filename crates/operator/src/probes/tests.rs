use std::{net::TcpListener, sync::mpsc};

use linchpin_cluster::{
    hub::{Hub, HubSettings},
    transport::{Transport, TransportOptions},
};
use linchpin_engine::contract::{ProbePace, Question, Via};
use linchpin_words::{Shared, egress::Egress, probe::ProbeTarget};

use super::*;
use crate::answers::Answers;

/// Probes that may go where the rule says, what they report, and what is counted.
fn probes(egress: Egress) -> (Probes, mpsc::Receiver<Vec<SubscriberId>>, Registry) {
    let (send, notified) = mpsc::channel();
    let send = Mutex::new(send);
    let listener: AnswerListener = Arc::new(move |woken: &[SubscriberId]| {
        let _ = send.lock().unwrap().send(woken.to_vec());
    });
    let settings = ProbeSettings { egress, ..ProbeSettings::default() };
    let mut registry = Registry::default();
    let times = ProbeTimes::register(&mut registry);
    (Probes::new(&settings, times, listener), notified, registry)
}

fn want(host: &str, port: u16) -> Want {
    let probe = Shared::new(Probe { place: ProbeTarget::host(host, port).unwrap(), request: None });
    Want::new(Question::Probe { via: Via::service_account("shop", "default"), probe, pace: ProbePace::Held })
}

#[test]
fn a_port_is_seen_to_open_and_to_close() {
    let (probes, notified, registry) = probes(Egress::default().with_loopback());
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let want = want("127.0.0.1", address.port());
    assert!(matches!(probes.read(&want), Seen::Unknown(why) if why.is_passing()));
    probes.subscribe(SubscriberId(7), [want.clone()].into());
    assert_eq!(notified.recv().unwrap(), [SubscriberId(7)]);
    assert_eq!(probes.read(&want), Seen::Probe(Err(Miss::Refused)));
    let listener = TcpListener::bind(address).unwrap();
    probes.refresh(&want);
    assert_eq!(notified.recv().unwrap(), [SubscriberId(7)]);
    assert_eq!(probes.read(&want), Seen::Probe(Ok(())));
    drop(listener);
    probes.refresh(&want);
    assert_eq!(notified.recv().unwrap(), [SubscriberId(7)], "after the second look");
    assert_eq!(probes.read(&want), Seen::Probe(Err(Miss::Refused)));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for outcome in ["Met", "Refused"] {
        assert!(
            text.contains(&format!("linchpin_probe_seconds_count{{kind=\"tcp\",outcome=\"{outcome}\"}}")),
            "{text}"
        );
    }
}

#[test]
fn b19_a_user_does_not_lead_the_operator_to_its_node() {
    let (probes, notified, _) = probes(Egress::default());
    let here = TcpListener::bind("127.0.0.1:0").unwrap();
    here.set_nonblocking(true).unwrap();
    let want = want("0x7f.1", here.local_addr().unwrap().port());
    probes.subscribe(SubscriberId(1), [want.clone()].into());
    notified.recv().unwrap();
    let Seen::Unknown(why) = probes.read(&want) else { panic!("{:?}", probes.read(&want)) };
    assert_eq!(why.reason, Reason::ProbeDenied);
    assert!(why.message.contains("127.0.0.0/8 (loopback)"), "{}", why.message);
    assert!(here.accept().is_err(), "nobody was connected to");
}

#[tokio::test]
async fn each_question_is_answered_by_whoever_can() {
    let (probes, notified, _) = probes(Egress::default().with_loopback());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // An API server that is not there: the hub knows nothing, and the probes do not care.
    let nowhere = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    let transport = Transport::new(&nowhere, &TransportOptions::default()).unwrap();
    let both = Answers::new(Hub::new(transport, HubSettings::default(), Arc::new(|_| {}))).with(probes);
    let network = want("127.0.0.1", port);
    let version = Want::new(Question::Version { via: Via::service_account("shop", "default") });
    both.subscribe(SubscriberId(1), [network.clone(), version.clone()].into());
    notified.recv().unwrap();
    let world = both.read([&network, &version]);
    assert_eq!(world.get(&network), Some(&Seen::Probe(Ok(()))));
    assert!(matches!(world.get(&version), Some(Seen::Unknown(_))), "{:?}", world.get(&version));
    both.subscribe(SubscriberId(1), BTreeSet::new());
    assert!(matches!(both.read([&network]).get(&network), Some(Seen::Unknown(_))), "nobody asks any more");
}
