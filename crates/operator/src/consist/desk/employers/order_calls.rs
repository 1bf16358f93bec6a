//! What the turns of employers send out, writes and calls, and what comes back of it.

use std::sync::Arc;

use linchpin_consist::{
    ObservedEmployer,
    settle::{Act, ProviderLook, SettleDecision, SettleOutcome},
};
use linchpin_engine::contract::Notice;
use linchpin_words::{Timestamp, text};
use serde_json::Value;

use super::{Case, MESSAGE};
use crate::{
    consist::{
        acts::{OrderTarget, Provider},
        cluster_view::EmployerKey,
        crew::Worker,
        desk::{Desk, DeskMessage},
    },
    controller::now,
};

impl Desk {
    #[allow(clippy::too_many_arguments, reason = "what one turn has at hand")]
    pub(super) fn start_orders(
        &self,
        key: &EmployerKey,
        case: &Case,
        decision: &SettleDecision,
        aim: &OrderTarget,
        about: &ObservedEmployer,
        provider: &Provider,
        worker: &Worker,
        time: Timestamp,
    ) {
        for order in decision.orders.iter().cloned() {
            let wait = worker.turn(decision.memory.is_retry(&order), time);
            let (key, number, back) = (key.clone(), case.number, self.back.clone());
            let (write_context, aim, requests) =
                (self.write_context.clone(), aim.clone(), Arc::clone(&self.requests));
            let (about, provider, counts) = (about.clone(), provider.clone(), self.parts.counts.clone());
            let adapter = worker.name.clone();
            tokio::spawn(async move {
                tokio::time::sleep(wait).await;
                let (result, done) = if let Act::Call { call, items } = &order.act {
                    let items = items.iter().map(|(_, state)| Value::clone(state)).collect();
                    let begun = std::time::Instant::now();
                    let result = provider.call(&write_context, about, *call, items).await;
                    counts.called(&adapter, call.name(), result.is_ok(), begun.elapsed());
                    (result, None)
                } else {
                    let _turn = requests.acquire().await.ok();
                    let result = write_context.carry_out(&order.act, &aim).await;
                    let done = match &order.act {
                        Act::AddClean { .. } => Some("EnsureEmployerCleanFinalizerSucceed"),
                        // One that somebody ordered to be released may have left something in the provider.
                        Act::RemoveClean { .. } if !aim.employer.is_abandoned() => {
                            Some("CleanEmployerCleanFinalizerSucceed")
                        }
                        _ => None,
                    };
                    (result, done)
                };
                let result = result.map_err(|error| text::line_of(&error, MESSAGE));
                let outcome = SettleOutcome { slot: order.slot, number: order.number, at: now(), result };
                let _ = back.send(DeskMessage::Outcome { key, case: number, outcome, done });
            });
        }
    }

    #[allow(clippy::too_many_arguments, reason = "what one turn has at hand")]
    pub(super) fn start_look(
        &self,
        key: &EmployerKey,
        case: &Case,
        about: ObservedEmployer,
        decision: &SettleDecision,
        provider: Provider,
        worker: &Worker,
        time: Timestamp,
    ) {
        let wait = worker.turn(decision.memory.look_is_retry(), time);
        let question = decision.about;
        let (key, number, back) = (key.clone(), case.number, self.back.clone());
        let (counts, adapter) = (self.parts.counts.clone(), worker.name.clone());
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            let from = std::time::Instant::now();
            let (began, result) = provider.look(about, now).await;
            counts.called(&adapter, "Look", result.is_ok(), from.elapsed());
            let result = result.map_err(|failed| failed.in_words(|words| text::line_of(words, MESSAGE)));
            let look = ProviderLook { began, about: question, result };
            let _ = back.send(DeskMessage::Looked { key, case: number, look });
        });
    }

    pub(in crate::consist::desk) fn carried_out(
        &mut self,
        key: EmployerKey,
        number: u64,
        outcome: SettleOutcome,
        done: Option<&'static str>,
    ) {
        let succeeded = outcome.result.is_ok();
        if let Some(reason) = done.filter(|_| succeeded) {
            let shared = self.parts.shared.clone();
            let employer = shared.look().employers.get(&key).cloned();
            let followed = self.parts.kinds.employers[key.0].gvk.clone();
            let uid = employer.map(|employer| employer.uid.clone());
            let uid = uid.or_else(|| self.cases.get(&key).map(|case| case.uid.clone())).unwrap_or_default();
            let message = match reason {
                "EnsureEmployerCleanFinalizerSucceed" => "the clean finalizer was added",
                _ => "everything was cleaned, and the clean finalizer was removed",
            };
            let notice = Notice { reason: reason.to_owned(), message: message.to_owned(), warning: false };
            self.say(followed, &key.1, &key.2, &uid, notice);
        }
        if let Some(case) = self.cases.get_mut(&key).filter(|case| case.number == number) {
            case.outcomes.push(outcome);
            self.dirty.insert(key);
        }
    }

    pub(in crate::consist::desk) fn looked(&mut self, key: EmployerKey, number: u64, look: ProviderLook) {
        if let Some(case) = self.cases.get_mut(&key).filter(|case| case.number == number) {
            case.looking = false;
            case.look = Some(look);
            self.dirty.insert(key);
        }
    }
}
