//! What orders really do, and the rules that must hold in that moment.

use linchpin_consist::{
    Call,
    adapter::Batch,
    marks::PodEntries,
    settle::{Act, CompletedAct},
};

use super::{KEY, Server, World};

impl World {
    pub(super) fn act(&mut self, act: &Act) -> Result<CompletedAct, String> {
        self.effects += 1;
        let number = |pod: &linchpin_consist::settle::PodRef| pod.name[1..].parse::<usize>().unwrap();
        let gone = |world: &Self, number: usize| {
            if world.pods[number].there { Ok(()) } else { Err("not found".to_owned()) }
        };
        let to_employer = matches!(act, Act::AddClean { .. } | Act::RemoveClean { .. } | Act::Record { .. });
        if to_employer && !self.employer {
            return Err("not found".to_owned());
        }
        let version = match act {
            Act::Claim => {
                if self.binding.is_some() {
                    return Err("exists".to_owned());
                }
                self.version += 1;
                self.binding = Some(self.version);
                self.version
            }
            Act::Unclaim { .. } => {
                self.binding = None;
                0
            }
            Act::AddClean { finalizer } => {
                if self.deleting {
                    return Err("terminating".to_owned());
                }
                if self.binding.is_none() {
                    self.complain("clean finalizer before the binding".to_owned());
                }
                self.clean.insert(finalizer.clone());
                self.touch_employer()
            }
            Act::RemoveClean { finalizers: off } => {
                self.clean.retain(|finalizer| !off.contains(finalizer));
                let marked = self.pods.iter().any(|pod| {
                    pod.there
                        && (!pod.finalizers.is_empty()
                            || (!pod.terminating && PodEntries::read(pod.entries.as_deref()).has_key(KEY)))
                });
                if marked || self.vip || !self.servers.is_empty() || self.binding.is_some() {
                    self.complain(format!("released although something is left: {:?}", self.servers));
                }
                if self.deleting {
                    self.employer = false;
                }
                self.touch_employer()
            }
            Act::Record { .. } => self.touch_employer(),
            Act::WriteEntries { pod, text } => {
                let number = number(pod);
                gone(self, number)?;
                if self.pods[number].version != pod.version {
                    return Err("conflict".to_owned());
                }
                let removes = !PodEntries::read(Some(text)).has_key(KEY);
                if removes && !self.pods[number].finalizers.is_empty() {
                    self.complain("an entry went before its finalizer".to_owned());
                }
                if !removes && self.clean.is_empty() && self.employer {
                    self.complain("a pod was marked before the employer".to_owned());
                }
                self.pods[number].entries = Some(text.clone());
                self.bump(number)
            }
            Act::Protect { pod, finalizer } => {
                let number = number(pod);
                gone(self, number)?;
                if self.pods[number].terminating {
                    return Err("no new finalizers".to_owned());
                }
                self.pods[number].finalizers.insert(finalizer.clone());
                self.bump(number)
            }
            Act::Release { pod, finalizers: off } => {
                let number = number(pod);
                gone(self, number)?;
                let busy = self.servers.get(&number).is_some_and(|server| server.on || server.sessions);
                if busy && self.pods[number].running {
                    self.complain(format!("p{number} was released in traffic"));
                }
                self.pods[number].finalizers.retain(|finalizer| !off.contains(finalizer));
                self.bump(number)
            }
            Act::Call { call, items } => {
                let ids: Vec<String> = items.iter().map(|(id, _)| id.clone()).collect();
                return self.call(
                    *call,
                    &ids,
                    items.iter().map(|(_, state)| state.as_bool() == Some(true)).collect(),
                );
            }
        };
        Ok(CompletedAct { version: Some(version), batch: None })
    }

    pub(super) fn touch_employer(&mut self) -> u64 {
        self.version += 1;
        self.employer_version = self.version;
        self.version
    }

    fn call(&mut self, call: Call, ids: &[String], on: Vec<bool>) -> Result<CompletedAct, String> {
        if !self.up {
            return Err("down".to_owned());
        }
        let makes = !matches!(call, Call::DeleteEmployer | Call::DeleteEmployees);
        // What was under way when the employer went is seen and taken away again.
        if makes && self.clean.is_empty() && self.employer {
            self.complain(format!("{call:?} before the clean finalizer"));
        }
        let mut batch = Batch::default();
        for (id, on) in ids.iter().zip(on) {
            match call {
                Call::CreateEmployer | Call::UpdateEmployer => self.vip = true,
                Call::DeleteEmployer => self.vip = false,
                Call::CreateEmployees | Call::UpdateEmployees => {
                    let number: usize = id[1..].parse().unwrap();
                    let pod = &self.pods[number];
                    if pod.there && on && !PodEntries::read(pod.entries.as_deref()).has_key(KEY) {
                        self.complain(format!("p{number} was attached without its entry"));
                    }
                    let sessions = on || self.servers.get(&number).is_some_and(|server| server.sessions);
                    self.servers.insert(number, Server { on, sessions });
                }
                Call::DeleteEmployees => {
                    let number: usize = id[1..].parse().unwrap();
                    if let Some(server) = self.servers.get_mut(&number) {
                        server.on = false;
                        if server.sessions {
                            batch.pending.push((id.clone(), "1 session left".to_owned()));
                            continue;
                        }
                    }
                    self.servers.remove(&number);
                }
            }
            batch.done.push(id.clone());
        }
        Ok(CompletedAct { version: None, batch: Some(batch) })
    }
}
