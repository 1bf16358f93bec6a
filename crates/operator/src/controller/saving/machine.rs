//! What is to be written to an object of ours, and in which order. Pure, and without time: when is said by
//! [`write_pace`](super::write_pace).
//!
//! One write at a time: metadata (our finalizer, and with it the first journal or the end of it), then the status. Effects
//! that rely on the journal or the finalizer are held until both are saved: that is the law, and `exploration` tries every
//! order of decisions, arrivals, writes and failures.

#[cfg(test)]
mod exploration;

/// What is to be written to an object, and how far that is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct SavingMachine {
    /// Whether a decision was made that the status has not been drawn from.
    undrawn: bool,
    /// Our finalizer as it should be; none where it is.
    finalizer: Option<bool>,
    /// Whether the object may go as soon as its finalizer is off.
    released: bool,
    /// What the held effects need to be saved; none where none is held.
    needs: Option<u64>,
    /// How many critical changes of the journal are saved.
    saved: u64,
    /// Whether the status that the API server has holds a journal.
    journaled: bool,
    /// Whether the object has a first journal, beside its status.
    first_journal: bool,
    /// The write under way.
    writing: Option<SavingWrite>,
    /// The last write failed because the object is newer: wait until the newer one arrives.
    outdated: bool,
}

/// A write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SavingWrite {
    /// Metadata.
    Metadata {
        /// Our finalizer, where it changes.
        finalizer: Option<bool>,
        /// The first journal, where it changes.
        first_journal: Option<FirstJournal>,
    },
    /// The status.
    Status {
        /// How many critical changes of the journal it holds.
        critical: u64,
        /// Whether it holds a journal: one that cannot be read is kept as it is.
        journaled: bool,
    },
}

/// What becomes of the first journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FirstJournal {
    /// It is written, with this many critical changes in it.
    Put(u64),
    /// The status holds one: it goes.
    Shed,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextWrite {
    /// Write metadata.
    Metadata {
        /// Our finalizer, where it changes.
        finalizer: Option<bool>,
        /// What may be done about the first journal.
        first_journal: FirstJournalMay,
    },
    /// Draw the status, and say what came of it: [`SavingMachine::drawn`].
    Draw,
    /// Nothing.
    Nothing,
}

/// What may be done about the first journal with a write of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstJournalMay {
    /// It stays as it is.
    Stay,
    /// It may be written: there is no journal yet.
    Be,
    /// It goes.
    Go,
}

/// How a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteEnd {
    /// It took place. `newest`: nothing newer has arrived in the meantime.
    Done {
        /// See there.
        newest: bool,
    },
    /// The object is newer. `known`: the newer one has arrived already.
    Conflict {
        /// See there.
        known: bool,
    },
    /// The object is gone.
    Gone,
    /// It did not take place, or nobody knows.
    Failed,
}

impl SavingMachine {
    /// The object arrived with this in it.
    pub(crate) fn arrived(&mut self, journaled: bool, first_journal: bool) {
        self.journaled = journaled;
        self.first_journal = first_journal;
        self.outdated = false;
    }

    /// A decision was made: its status is to be drawn, and our finalizer is to be like this.
    pub(crate) fn decided(&mut self, finalizer: Option<bool>, released: bool) {
        self.undrawn = true;
        self.finalizer = finalizer;
        self.released |= released;
    }

    /// Nothing is to be written to the object any more.
    pub(crate) fn drop_all(&mut self) {
        self.undrawn = false;
        self.finalizer = None;
        self.first_journal = false;
    }

    /// Effects are held that need this to be saved.
    pub(crate) fn hold(&mut self, critical: u64) {
        self.needs = Some(self.needs.map_or(critical, |needs| needs.max(critical)));
    }

    /// The held effects are not to start any more.
    pub(crate) fn withdraw(&mut self) {
        self.needs = None;
    }

    /// Whether the held effects may start: all that they rely on is saved. They are held no longer then.
    pub(crate) fn release_held(&mut self) -> bool {
        let may = self.needs.is_some_and(|needs| needs <= self.saved) && self.finalizer.is_none();
        if may {
            self.needs = None;
        }
        may
    }

    /// Whether there may be something to write.
    pub(crate) fn has_something(&self) -> bool {
        self.undrawn || self.finalizer.is_some() || self.sheds()
    }

    /// Whether the object has a first journal that counts no more.
    fn sheds(&self) -> bool {
        self.first_journal && self.journaled
    }

    /// Whether it may be written, as far as earlier writes go.
    pub(crate) fn is_due(&self) -> bool {
        self.has_something() && self.writing.is_none() && !self.outdated
    }

    /// Whether effects, or the end of the object, wait for what is to be written.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.needs.is_some() || self.released
    }

    /// Whether there is nothing to write, nothing under way and nothing held.
    pub(crate) fn is_idle(&self) -> bool {
        !self.has_something() && self.writing.is_none() && self.needs.is_none()
    }

    /// Whether a write is under way.
    pub(crate) fn is_writing(&self) -> bool {
        self.writing.is_some()
    }

    /// Whether a newer object is on its way.
    pub(crate) fn is_outdated(&self) -> bool {
        self.outdated
    }

    /// Whether a status was decided and not drawn.
    pub(crate) fn is_undrawn(&self) -> bool {
        self.undrawn
    }

    /// What to do next.
    pub(crate) fn next(&self) -> NextWrite {
        if !self.is_due() {
            return NextWrite::Nothing;
        }
        let first_journal = match self.journaled {
            true if self.first_journal => FirstJournalMay::Go,
            true => FirstJournalMay::Stay,
            false => FirstJournalMay::Be,
        };
        match self.finalizer {
            None if self.undrawn => NextWrite::Draw,
            // Alone, a first journal is worth no write.
            None if !self.sheds() => NextWrite::Nothing,
            finalizer => NextWrite::Metadata { finalizer, first_journal },
        }
    }

    /// The status was drawn; `new`: it is another one than the API server has. Says whether it is to be written.
    pub(crate) fn drawn(&mut self, new: bool) -> bool {
        self.undrawn = false;
        new || self.needs.is_some()
    }

    /// A write is begun.
    pub(crate) fn begin(&mut self, write: SavingWrite) {
        self.writing = Some(write);
    }

    /// The write under way has ended. Returns what it was.
    pub(crate) fn ended(&mut self, ended: WriteEnd) -> Option<SavingWrite> {
        let write = self.writing.take()?;
        match ended {
            WriteEnd::Done { newest } => self.wrote(write, newest),
            WriteEnd::Conflict { known } => self.outdated = !known,
            WriteEnd::Gone => self.drop_all(),
            WriteEnd::Failed => {}
        }
        Some(write)
    }

    fn wrote(&mut self, write: SavingWrite, newest: bool) {
        match write {
            SavingWrite::Status { critical, journaled } => {
                self.journaled = journaled;
                self.saved = self.saved.max(critical);
            }
            SavingWrite::Metadata { finalizer, first_journal } => {
                match first_journal {
                    Some(FirstJournal::Put(critical)) => {
                        self.first_journal = true;
                        self.saved = self.saved.max(critical);
                    }
                    Some(FirstJournal::Shed) => self.first_journal = false,
                    None => {}
                }
                // What has arrived in the meantime is newer: the next decision says what is missing.
                if newest && finalizer.is_some() {
                    self.finalizer.take_if(|wanted| Some(*wanted) == finalizer);
                }
            }
        }
    }
}
