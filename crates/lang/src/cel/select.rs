//! Selecting parts of the data: what is not there is missing, and what cannot be known yet decides nothing.
//!
//! Entries of a variable may be unknown, as a whole or in some of their fields. Such a field is unknown however it is
//! selected (`x.y`, `x['y']`, `x.?y`), and an entry that is used as a whole is unknown if any field of it is; its other
//! fields, and the question whether it has a field, are answered as ever.

use std::rc::Rc;

use super::Unknown;
use super::evaluate::{CelMachine, CelResult, CelStop};
use super::meter::{Fault, Meter, Open, types};
use super::node::{CelNode, CelNodeKind};
use super::value::{CelText, CelValue};

/// What is read of something that is selected.
#[derive(Clone, Copy)]
pub(super) enum Selection<'n> {
    /// All of it.
    All,
    /// One field.
    Field(&'n str),
    /// Only whether it has a field.
    Presence,
}

impl Unknown {
    /// Whether that part of the entry is not known.
    fn hides(&self, below: Selection<'_>) -> bool {
        self.fields.is_empty()
            || match below {
                Selection::All => true,
                Selection::Field(name) => self.fields.contains_key(name),
                Selection::Presence => false,
            }
    }

    /// What reading it ends in.
    pub(super) fn fault(&self, field: Option<&str>) -> Fault {
        let field = field.filter(|field| self.fields.contains_key(field));
        let words = field.and_then(|field| self.fields.get(field)).copied().unwrap_or_default();
        Fault::Unknown(Open { why: self.why.clone(), field: field.map(str::to_owned), words })
    }
}

impl CelStop<'_> {
    /// The words that a part may turn out to be, where it is itself what is not known and nothing was made of that.
    pub(super) fn words_of(&self, part: &CelNode) -> Option<&'static [&'static str]> {
        let (CelNodeKind::Field(of, _) | CelNodeKind::Index(of, _)) = &part.kind else { return None };
        let plain = matches!(&of.kind, CelNodeKind::Field(..) | CelNodeKind::Index(..));
        match &self.fault {
            Fault::Unknown(open) if plain && std::ptr::eq(self.node, of.as_ref()) => {
                Some(open.words).filter(|words| !words.is_empty())
            }
            _ => None,
        }
    }
}

impl<'a> CelMachine<'a> {
    /// The first entry of a variable of which something is not known.
    pub(super) fn unknown(&self, index: usize) -> Option<&'a Unknown> {
        self.unknowns.get(index).copied().flatten()?.values().next()
    }

    /// The value of a part that selects something, of which no more than `below` is read.
    pub(super) fn selection(&mut self, node: &'a CelNode, below: Selection<'_>) -> CelResult<'a> {
        let stop = |fault| CelStop { node, fault };
        match &node.kind {
            CelNodeKind::Field(of, name) => {
                let of = self.source(node, of, Selection::Field(name), below)?;
                field(&of, name).map_err(stop)
            }
            CelNodeKind::Has(of, name) => {
                // Of an entry it is asked whether it can be seen; of a field, whether it is there.
                let asked = match &of.kind {
                    CelNodeKind::Variable(..) => Selection::Field(name),
                    _ => Selection::Presence,
                };
                let of = self.source(node, of, asked, Selection::Presence)?;
                has(&of, name).map_err(stop)
            }
            CelNodeKind::OptionalField(of, name) => {
                let of = self.source(node, of, Selection::Field(name), below)?;
                let name = CelValue::String(CelText::Given(name));
                optional_index(&mut self.meter, &of, &name).map_err(stop)
            }
            CelNodeKind::Index(of, index) => {
                let (of, index) = self.source_at(node, of, index, below)?;
                match &of {
                    CelValue::Optional(_) => optional_index(&mut self.meter, &of, &index),
                    _ => at(&of, &index),
                }
                .map_err(stop)
            }
            CelNodeKind::OptionalIndex(of, index) => {
                let (of, index) = self.source_at(node, of, index, below)?;
                optional_index(&mut self.meter, &of, &index).map_err(stop)
            }
            _ => self.run(node),
        }
    }

    /// What `part` is selected from by `node`, unless that part, or what is read `below` it, is not known.
    fn source(
        &mut self,
        node: &'a CelNode,
        of: &'a CelNode,
        part: Selection<'_>,
        below: Selection<'_>,
    ) -> CelResult<'a> {
        let index = match &of.kind {
            CelNodeKind::Variable(index, _) => index,
            CelNodeKind::Field(..)
            | CelNodeKind::OptionalField(..)
            | CelNodeKind::Index(..)
            | CelNodeKind::OptionalIndex(..) => {
                self.meter.steps(1).map_err(|fault| CelStop { node: of, fault })?;
                return self.selection(of, part);
            }
            _ => return self.run(of),
        };
        let (Some(entries), Selection::Field(name)) = (self.unknowns.get(*index).copied().flatten(), part)
        else {
            return self.run(of);
        };
        let field = match below {
            Selection::Field(field) => Some(field),
            Selection::All | Selection::Presence => None,
        };
        match entries.get(name).filter(|unknown| unknown.hides(below)) {
            Some(unknown) => Err(CelStop { node, fault: unknown.fault(field) }),
            None => self.variable(*index).map_err(|fault| CelStop { node: of, fault }),
        }
    }

    /// The same for a part whose name is computed.
    fn source_at(
        &mut self,
        node: &'a CelNode,
        of: &'a CelNode,
        index: &'a CelNode,
        below: Selection<'_>,
    ) -> CelResult<'a, (CelValue<'a>, CelValue<'a>)> {
        if self.unknowns.iter().all(Option::is_none) {
            return Ok((self.run(of)?, self.run(index)?));
        }
        let index = self.run(index)?;
        let part = if let CelValue::String(name) = &index {
            Selection::Field(name.as_str())
        } else {
            Selection::All
        };
        let of = self.source(node, of, part, below)?;
        Ok((of, index))
    }
}

fn field<'a>(of: &CelValue<'a>, name: &str) -> Result<CelValue<'a>, Fault> {
    match of {
        CelValue::Map(map) => map.get(name).ok_or(Fault::Missing),
        // The API server writes null for what is not set.
        CelValue::Null => Err(Fault::Missing),
        CelValue::Optional(None) => Ok(CelValue::Optional(None)),
        CelValue::Optional(Some(inner)) => match field(inner, name) {
            Ok(value) => Ok(CelValue::Optional(Some(Rc::new(value)))),
            Err(Fault::Missing) => Ok(CelValue::Optional(None)),
            Err(fault) => Err(fault),
        },
        other => Err(types("selecting a field", &[other])),
    }
}

fn has<'a>(of: &CelValue<'a>, name: &str) -> Result<CelValue<'a>, Fault> {
    match of {
        CelValue::Optional(None) => Ok(CelValue::Bool(false)),
        CelValue::Optional(Some(inner)) => has(inner, name),
        CelValue::Null => Err(Fault::Missing),
        _ => match field(of, name) {
            Ok(_) => Ok(CelValue::Bool(true)),
            Err(Fault::Missing) => Ok(CelValue::Bool(false)),
            Err(fault) => Err(fault),
        },
    }
}

fn at<'a>(of: &CelValue<'a>, index: &CelValue<'a>) -> Result<CelValue<'a>, Fault> {
    match (of, index) {
        (
            CelValue::Map(map),
            CelValue::String(_)
            | CelValue::Bool(_)
            | CelValue::Int(_)
            | CelValue::Uint(_)
            | CelValue::Double(_),
        ) => map.get_by(index).ok_or(Fault::Missing),
        (CelValue::List(list), CelValue::Int(_) | CelValue::Uint(_)) => {
            let place = match index {
                CelValue::Int(place) => usize::try_from(*place).ok(),
                CelValue::Uint(place) => usize::try_from(*place).ok(),
                _ => None,
            };
            place.and_then(|place| list.get(place)).ok_or(Fault::Missing)
        }
        (CelValue::Null, _) => Err(Fault::Missing),
        _ => Err(types("[]", &[of, index])),
    }
}

/// Selection that gives `optional.none()` for what is not there.
fn optional_index<'a>(
    meter: &mut Meter,
    of: &CelValue<'a>,
    index: &CelValue<'a>,
) -> Result<CelValue<'a>, Fault> {
    meter.make_list(1)?;
    let of = match of {
        CelValue::Optional(None) => return Ok(CelValue::Optional(None)),
        CelValue::Optional(Some(inner)) => inner,
        other => other,
    };
    match at(of, index) {
        Ok(value) => Ok(CelValue::Optional(Some(Rc::new(value)))),
        Err(Fault::Missing) => Ok(CelValue::Optional(None)),
        Err(fault) => Err(fault),
    }
}
