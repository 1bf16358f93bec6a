//! What happens by itself, and how everything comes to rest.

use std::collections::BTreeSet;

use linchpin_consist::marks::{PodEntries, clean_finalizer};

use super::{Event, KEY, World};

impl World {
    /// What happens in the world by itself.
    pub(crate) fn happen(&mut self, event: Event) {
        self.time += 1;
        match event {
            Event::Ready(number, ready) => {
                self.pods[number].ready = ready;
                self.bump(number);
            }
            Event::Delete(number) => {
                self.pods[number].terminating = true;
                self.bump(number);
            }
            Event::Stop(number) => {
                self.pods[number].running = false;
                self.pods[number].ready = false;
                if let Some(server) = self.servers.get_mut(&number) {
                    server.sessions = false;
                }
                self.bump(number);
            }
            Event::Unselect(number) => {
                self.pods[number].selected = false;
                self.bump(number);
            }
            Event::SessionsEnd => {
                for server in self.servers.values_mut().filter(|server| !server.on) {
                    server.sessions = false;
                }
            }
            Event::Label(labelled) => {
                self.labelled = labelled;
                self.touch_employer();
            }
            Event::DeleteEmployer => {
                self.deleting = true;
                self.touch_employer();
                if self.clean.is_empty() {
                    self.employer = false;
                }
            }
            Event::Strip if self.deleting => {
                self.clean.clear();
                self.employer = false;
            }
            Event::Strip => {}
            Event::Provider(up) => self.up = up,
        }
    }

    /// Lets everything run its course, with a provider that answers and sessions that end.
    pub(crate) fn run_out(&mut self) -> Result<(), String> {
        self.happen(Event::Provider(true));
        for _ in 0..200 {
            let Some(decision) = self.turn() else { return self.settled() };
            let mut quiet = self.looking.is_none() && self.outcomes.is_empty() && decision.orders.is_empty();
            while !self.flight.is_empty() {
                self.carry_out(0, true);
                quiet = false;
            }
            if self.servers.values().any(|server| !server.on && server.sessions) {
                self.happen(Event::SessionsEnd);
                quiet = false;
            }
            self.deliver_look();
            let next = decision.wake_at.map_or(0, |at| at.as_microsecond() - self.time);
            let resync = i64::try_from(Self::options().resync.as_micros()).unwrap();
            if quiet && next < resync / 2 && next > 0 {
                self.time += next;
                quiet = false;
            }
            if quiet {
                return self.settled();
            }
            self.time += next.clamp(0, 10_000_000);
        }
        Err(format!("it does not come to rest: {self:?}"))
    }

    /// Whether everything is where it belongs.
    fn settled(&self) -> Result<(), String> {
        let leaving = self.is_leaving();
        for (number, pod) in self.pods.iter().enumerate().filter(|(_, pod)| pod.there) {
            let employed = pod.selected && !pod.terminating && !leaving;
            let server = self.servers.get(&number);
            let right = match (employed, server) {
                (true, Some(server)) => server.on == pod.ready && pod.finalizers.is_empty() != pod.ready,
                (true, None) => false,
                (false, server) => server.is_none() && pod.finalizers.is_empty(),
            };
            let marked = PodEntries::read(pod.entries.as_deref()).has_key(KEY);
            if !right || (marked != employed && !pod.terminating) {
                return Err(format!("p{number} is not as it should be: {self:?}"));
            }
        }
        let clean = BTreeSet::from([clean_finalizer("web")]);
        let employer = if leaving { BTreeSet::new() } else { clean };
        if self.clean != employer || self.binding.is_none() != leaving || self.vip == leaving {
            return Err(format!("the employer is not as it should be: {self:?}"));
        }
        Ok(())
    }
}
