//! Killed at any moment while pods are being deleted: none of them ever hangs on us.

use std::{
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{Shop, finalizers, pod, service};
use crate::bare;

const PODS: u64 = 6;

/// Moments that nobody chose; the seed is told where something fails.
struct Chance(u64);

impl Chance {
    fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Self(u64::from(now.subsec_nanos()) | 1)
    }

    fn below(&mut self, milliseconds: u64) -> Duration {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Duration::from_millis((self.0 >> 33) % milliseconds)
    }
}

#[test]
fn terminating_pods_never_hang_however_often_the_process_is_killed() {
    let namespace = "killed";
    let mut shop = Shop::open(&bare(), &[namespace], &["--resync=1s", "--drain-timeout=6s"]);
    let scenario = shop.scenario(namespace);
    service(&scenario, "web");
    let mut chance = Chance::new();
    let seed = chance.0;
    let name = |number: u64| format!("web-{number}");
    let present = || (0..PODS).filter(|number| scenario.get("Pod", &name(*number)).is_some()).count();
    for round in 0..4 {
        for number in 0..PODS {
            pod(&scenario, &name(number), "web", &format!("10.0.{round}.{}", number + 1), false);
        }
        shop.until("all are protected", || {
            (0..PODS).all(|number| {
                scenario.get("Pod", &name(number)).is_some_and(|pod| !finalizers(&pod).is_empty())
            })
        });
        // Half of them go, and the process is killed again and again in the middle of it; then the others.
        for half in 0..2 {
            for number in (0..PODS).filter(|number| number % 2 == half) {
                scenario.delete("Pod", &name(number));
                thread::sleep(chance.below(30));
            }
            for _ in 0..3 {
                thread::sleep(chance.below(250));
                shop.start();
                thread::sleep(chance.below(1_500));
            }
        }
        shop.until(&format!("no pod is left in round {round} of seed {seed}"), || present() == 0);
        shop.until("nor at the provider", || {
            let state = shop.provider.state();
            state["employees"]["Service/killed/web"].as_array().is_none_or(Vec::is_empty)
        });
    }
    // Nobody knows whether they are drained: they go when a drain may take no longer.
    for number in 0..PODS {
        pod(&scenario, &name(number), "web", &format!("10.0.9.{}", number + 1), false);
    }
    shop.until("all are protected once more", || {
        (0..PODS)
            .all(|number| scenario.get("Pod", &name(number)).is_some_and(|pod| !finalizers(&pod).is_empty()))
    });
    shop.provider.process.kill();
    for number in 0..PODS {
        scenario.delete("Pod", &name(number));
    }
    assert_eq!(present(), usize::try_from(PODS).unwrap(), "they are held while nobody knows");
    shop.start();
    shop.until("no pod is left without a provider", || present() == 0);
    shop.judge(&[namespace]);
}
