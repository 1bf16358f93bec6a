//! Everything one rendering builds, reads and may still spend.
//!
//! Lists and dicts made by the template, the paths read so far, and the budget of steps and bytes. Functions get
//! the store and their arguments and nothing else, so whatever they can reach is counted here.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Map, Value as Json};

use super::error::Cause;
use super::limits;
use super::path::{DataPath, HIDDEN};
use super::pattern::GoPattern;
use super::trail::{Trail, TrailSegment};
use super::value::{BasicKind, DictId, Element, ListId, PathId, TemplateText, TypeName, Value};

/// What a small text costs beyond its letters.
pub(crate) const PIECE: usize = 48;

/// What is left to spend.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    steps: Cell<u64>,
    intermediate: Cell<usize>,
}

impl Budget {
    pub(crate) fn full() -> Self {
        Self { steps: Cell::new(limits::STEPS), intermediate: Cell::new(limits::INTERMEDIATE_BYTES) }
    }

    /// The steps taken of a full one.
    pub(crate) fn spent(&self) -> u64 {
        limits::STEPS - self.steps.get()
    }
}

/// A list made by the template.
pub(crate) struct TemplateList<'d> {
    pub(crate) element: Element,
    pub(crate) items: Vec<Value<'d>>,
}

/// A dict made by the template, in key order as Go shows it.
pub(crate) struct Dict<'d> {
    pub(crate) element: Element,
    pub(crate) entries: BTreeMap<TemplateText<'d>, Value<'d>>,
}

/// The entries of an object or dict in key order.
pub(crate) type KeyedValues<'d> = Vec<(TemplateText<'d>, Value<'d>)>;

/// The state of one rendering.
pub(crate) struct Store<'d> {
    pub(crate) now: Timestamp,
    lists: Vec<TemplateList<'d>>,
    dicts: Vec<Dict<'d>>,
    trail: Trail<'d>,
    budget: Budget,
    patterns: BTreeMap<String, GoPattern>,
}

impl<'d> Store<'d> {
    pub(crate) fn new(now: Timestamp, budget: Budget) -> Self {
        Self {
            now,
            lists: Vec::new(),
            dicts: Vec::new(),
            trail: Trail::new(),
            budget,
            patterns: BTreeMap::new(),
        }
    }

    pub(crate) fn into_budget(self) -> Budget {
        self.budget
    }

    /// Takes steps from the budget.
    pub(crate) fn step(&self, steps: u64) -> Result<(), Cause> {
        match self.budget.steps.get().checked_sub(steps) {
            Some(left) => {
                self.budget.steps.set(left);
                Ok(())
            }
            None => Err(Cause::Limit {
                what: "steps",
                limit: usize::try_from(limits::STEPS).unwrap_or(usize::MAX),
            }),
        }
    }

    /// Takes bytes from the budget before something of that size is built, and the time it takes to build it.
    pub(crate) fn charge(&self, bytes: usize) -> Result<(), Cause> {
        let Some(left) = self.budget.intermediate.get().checked_sub(bytes) else {
            return Err(Cause::Limit { what: "bytes of values", limit: limits::INTERMEDIATE_BYTES });
        };
        self.budget.intermediate.set(left);
        self.step(bytes as u64 / 256)
    }

    /// A new text, paid for.
    pub(crate) fn text(&self, text: String) -> Result<Value<'d>, Cause> {
        self.charge(text.len())?;
        Ok(Value::text(text))
    }

    /// A new list, paid for.
    pub(crate) fn list(&mut self, element: Element, items: Vec<Value<'d>>) -> Result<Value<'d>, Cause> {
        self.charge(64 + items.len() * size_of::<Value<'_>>())?;
        self.lists.push(TemplateList { element, items });
        Ok(Value::List(ListId(self.lists.len() - 1)))
    }

    /// A new list of texts; each is paid for before the next is made.
    pub(crate) fn texts(&mut self, texts: impl IntoIterator<Item = String>) -> Result<Value<'d>, Cause> {
        let mut items = Vec::new();
        for text in texts {
            self.charge(PIECE + text.len())?;
            items.push(Value::text(text));
        }
        self.list(Element::Text, items)
    }

    /// A new dict, paid for.
    pub(crate) fn dict(
        &mut self,
        element: Element,
        entries: BTreeMap<TemplateText<'d>, Value<'d>>,
    ) -> Result<Value<'d>, Cause> {
        self.charge(64 + entries.len() * 3 * size_of::<Value<'_>>())?;
        self.dicts.push(Dict { element, entries });
        Ok(Value::Dict(DictId(self.dicts.len() - 1)))
    }

    pub(crate) fn list_of(&self, id: ListId) -> &TemplateList<'d> {
        &self.lists[id.0]
    }

    pub(crate) fn dict_of(&self, id: DictId) -> &Dict<'d> {
        &self.dicts[id.0]
    }

    pub(crate) fn dict_of_mut(&mut self, id: DictId) -> &mut Dict<'d> {
        &mut self.dicts[id.0]
    }

    /// The items of a list; reading them reads its length.
    pub(crate) fn items(&self, value: &Value<'d>) -> Result<Option<Vec<Value<'d>>>, Cause> {
        match value {
            Value::Data(Json::Array(items), path) => {
                self.step(items.len() as u64 / 4)?;
                self.read_shape(*path);
                let items = items.iter().enumerate();
                Ok(Some(items.map(|(index, item)| self.at_index(item, *path, index)).collect()))
            }
            Value::List(id) => {
                let items = &self.list_of(*id).items;
                self.step(items.len() as u64 / 4)?;
                Ok(Some(items.clone()))
            }
            _ => Ok(None),
        }
    }

    /// The entries of an object or dict by key; reading them reads its keys.
    pub(crate) fn entries(&self, value: &Value<'d>) -> Result<Option<KeyedValues<'d>>, Cause> {
        match value {
            Value::Data(Json::Object(entries), path) => {
                self.step(entries.len() as u64 / 4)?;
                self.read_shape(*path);
                let mut sorted: Vec<(&'d String, &'d Json)> = entries.iter().collect();
                sorted.sort_by_key(|(key, _)| *key);
                let entries = sorted.into_iter();
                Ok(Some(
                    entries
                        .map(|(key, item)| {
                            (TemplateText::Borrowed(key.as_str()), self.at_key(item, *path, key))
                        })
                        .collect(),
                ))
            }
            Value::Dict(id) => {
                let entries = &self.dict_of(*id).entries;
                self.step(entries.len() as u64 / 4)?;
                Ok(Some(entries.iter().map(|(key, item)| (key.clone(), item.clone())).collect()))
            }
            _ => Ok(None),
        }
    }

    /// How many items or entries there are.
    pub(crate) fn length(&self, value: &Value<'d>) -> Option<usize> {
        match value {
            Value::Data(json, path) => {
                self.read_shape(*path);
                Some(json.as_array().map_or_else(|| json.as_object().map_or(0, Map::len), Vec::len))
            }
            Value::List(id) => Some(self.list_of(*id).items.len()),
            Value::Dict(id) => Some(self.dict_of(*id).entries.len()),
            Value::Text(text) => Some(text.len()),
            _ => None,
        }
    }

    /// The entry with exactly this key; one that is missing in the data counts as read.
    pub(crate) fn entry(&self, value: &Value<'d>, key: &TemplateText<'d>) -> Option<Value<'d>> {
        match value {
            Value::Data(Json::Object(entries), path) => {
                if let Some((key, item)) = entries.get_key_value(&**key) {
                    return Some(self.at_key(item, *path, key));
                }
                self.read(self.child(*path, key));
                None
            }
            Value::Dict(id) => self.dict_of(*id).entries.get(&**key).cloned(),
            _ => None,
        }
    }

    /// The value below `path` at a key of the data.
    pub(crate) fn at_key(&self, item: &'d Json, path: PathId, key: &'d str) -> Value<'d> {
        self.below(item, self.trail.path(path, TrailSegment::Key(key)))
    }

    /// The value below `path` at a position of the data.
    pub(crate) fn at_index(&self, item: &'d Json, path: PathId, index: usize) -> Value<'d> {
        self.below(item, self.trail.path(path, TrailSegment::Index(index)))
    }

    /// The value for something that uses all of it: data counts as read here, and what is below it not once more.
    pub(crate) fn whole(&self, value: &Value<'d>) -> Value<'d> {
        match value {
            Value::Data(json, path) => {
                self.read(*path);
                Value::Data(json, PathId::NONE)
            }
            _ => value.clone(),
        }
    }

    /// A scalar is read by looking at it; an object or list only when something is done with it.
    fn below(&self, item: &'d Json, path: PathId) -> Value<'d> {
        if !item.is_array() && !item.is_object() {
            self.read(path);
        }
        Value::of(item, path)
    }

    /// The path one key further down, for keys that are not there.
    ///
    /// A key that was computed may be a secret value, so it is not spelled out; the keys of its parent count as read.
    pub(crate) fn child(&self, path: PathId, key: &TemplateText<'d>) -> PathId {
        if let TemplateText::Literal(key) = key {
            return self.trail.path(path, TrailSegment::Key(key));
        }
        self.read_shape(path);
        self.trail.path(path, TrailSegment::Key(HIDDEN))
    }

    /// The error for a value of the data that is not there; `None` when the nil is not from the data.
    pub(crate) fn missing(&self, path: PathId) -> Option<Cause> {
        self.read(path);
        (path != PathId::NONE).then(|| Cause::Missing { path: self.trail.spell(path) })
    }

    /// Notes that the value at this path, with all below it, was used.
    pub(crate) fn read(&self, path: PathId) {
        self.trail.read(path);
    }

    /// Notes that only the keys or the length of what is at this path were used.
    pub(crate) fn read_shape(&self, path: PathId) {
        self.trail.read_shape(path);
    }

    /// What was read, and of which containers only the shape.
    pub(crate) fn all_reads(&self) -> (BTreeSet<DataPath>, BTreeSet<DataPath>) {
        self.trail.all()
    }

    /// A compiled regular expression; compiling is costly and paid for once per pattern.
    pub(crate) fn pattern(&mut self, function: &'static str, source: &str) -> Result<GoPattern, Cause> {
        if let Some(pattern) = self.patterns.get(source) {
            return Ok(pattern.clone());
        }
        self.step(2_000)?;
        self.charge(limits::REGEX_BYTES)?;
        let pattern = GoPattern::compile(source)
            .map_err(|message| Cause::Function { function, message: message.to_owned() })?;
        self.patterns.insert(source.to_owned(), pattern.clone());
        Ok(pattern)
    }

    /// The Go name of a value's type.
    pub(crate) fn type_name(&self, value: &Value<'d>) -> TypeName {
        TypeName(match value {
            Value::Nil(_) => "<nil>",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Int64(_) => "int64",
            Value::Byte(_) => "uint8",
            Value::Float(_) => "float64",
            Value::Text(_) => "string",
            Value::Moment(_) => "time.Time",
            Value::Data(Json::Array(_), _) => "[]interface {}",
            Value::Data(..) => "map[string]interface {}",
            Value::List(id) => match self.list_of(*id).element {
                Element::Any => "[]interface {}",
                Element::Text => "[]string",
                Element::Int => "[]int",
            },
            Value::Dict(id) => match self.dict_of(*id).element {
                Element::Text => "map[string]string",
                _ => "map[string]interface {}",
            },
        })
    }

    /// The Go name of a value's kind.
    pub(crate) fn kind_name(value: &Value<'d>) -> &'static str {
        match value {
            Value::Nil(_) => "invalid",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Int64(_) => "int64",
            Value::Byte(_) => "uint8",
            Value::Float(_) => "float64",
            Value::Text(_) => "string",
            Value::Moment(_) => "struct",
            Value::Data(Json::Array(_), _) | Value::List(_) => "slice",
            Value::Data(..) | Value::Dict(_) => "map",
        }
    }

    /// Go's kind of a value, for comparisons.
    pub(crate) fn basic_kind(value: &Value<'d>) -> BasicKind {
        match value {
            Value::Bool(_) => BasicKind::Bool,
            Value::Int(_) | Value::Int64(_) => BasicKind::Int,
            Value::Byte(_) => BasicKind::Uint,
            Value::Float(_) => BasicKind::Float,
            Value::Text(_) => BasicKind::Text,
            _ => BasicKind::Other,
        }
    }

    /// Go's truth: not the zero value of its type.
    pub(crate) fn is_true(&self, value: &Value<'d>) -> bool {
        match value {
            Value::Nil(_) => false,
            Value::Bool(value) => *value,
            Value::Int(number) | Value::Int64(number) => *number != 0,
            Value::Byte(number) => *number != 0,
            Value::Float(number) => *number != 0.0,
            Value::Moment(_) => true,
            _ => self.length(value).is_some_and(|length| length > 0),
        }
    }
}
