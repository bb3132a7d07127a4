//! The values of the next trial: what is fixed, and the optimizer's choice for the rest, neither forbidden nor known.

use std::collections::HashSet;

use boscage::stream::Purpose;
use boscage::{Method, Optimizer, Point, Stream};

use crate::definition::Definition;
use crate::error::{Error, Result};
use crate::parameters::Values;

/// How many points of the optimizer that are forbidden or known are replaced before points are drawn at random.
const REPLACED_ASKS: usize = 8;
/// How many points are drawn at random before the space counts as forbidden altogether.
const RANDOM_DRAWS: u64 = 100_000;

/// What has been tried and what is being tried.
pub(crate) struct Tried<'a> {
    /// The points that are being evaluated, in the order of their trials.
    pub(crate) running: Vec<Point>,
    /// The points of all trials, in any order.
    pub(crate) known: Vec<&'a Point>,
}

/// Values for a trial: those of `fixed`, and the optimizer's for the others. Randomness comes from the trial's stream alone.
pub(crate) fn propose(
    definition: &Definition,
    optimizer: &mut dyn Optimizer,
    fixed: &Values,
    tried: Tried<'_>,
    stream: &Stream,
) -> Result<Values> {
    let space = &definition.space;
    let mut whole = fixed.clone();
    space.drop_inactive(&mut whole);
    if space.encode(&whole).is_ok() {
        return match space.forbidden_by(&whole) {
            Some(forbidden) => Err(Error::Values {
                reason: format!("the values are forbidden by `{}`", forbidden.text()),
            }),
            None => Ok(whole),
        };
    }
    let complete = |point: &Point| -> Result<Values> {
        let mut values = space.engine_values(point)?;
        for (value, fixed) in values.iter_mut().zip(fixed) {
            if fixed.is_some() {
                value.clone_from(fixed);
            }
        }
        space.drop_inactive(&mut values);
        Ok(values)
    };
    // Points that differ only where a condition does not hold are one, which the optimizer does not know.
    let bits = |point: &Point| point.as_slice().iter().map(|x| x.to_bits()).collect::<Vec<u64>>();
    let may_repeat = fixed.iter().any(Option::is_some) || !avoids_repeats(&definition.method);
    let mut known = HashSet::new();
    if !may_repeat {
        known.extend(tried.known.into_iter().map(bits));
    }
    let is_new = |values: &Values| -> Result<bool> {
        Ok(may_repeat || !known.contains(&bits(&space.encode(values)?)))
    };
    let mut pending = tried.running;
    for _ in 0..REPLACED_ASKS {
        let point = optimizer.ask(&pending, stream).map_err(|error| match error {
            // The optimizer counts points that are one, or forbidden.
            boscage::Error::SpaceExhausted { .. } if !may_repeat => {
                boscage::Error::SpaceExhausted { points: known.len() as u128 }
            }
            other => other,
        })?;
        let values = complete(&point)?;
        if space.forbidden_by(&values).is_none() && is_new(&values)? {
            return Ok(values);
        }
        // Expecting nothing new there, the optimizer goes elsewhere.
        pending.push(point);
    }
    let mut generator = stream.generator(Purpose::Repeat);
    let mut are_all_forbidden = true;
    for _ in 0..RANDOM_DRAWS {
        let values = complete(&space.engine().sample(&mut generator))?;
        if space.forbidden_by(&values).is_none() {
            if is_new(&values)? {
                return Ok(values);
            }
            are_all_forbidden = false;
        }
    }
    if !are_all_forbidden {
        return Err(boscage::Error::SpaceExhausted { points: known.len() as u128 }.into());
    }
    Err(Error::Study {
        reason: format!(
            "{RANDOM_DRAWS} points in a row were forbidden; the conditions in `forbidden` leave (almost) nothing"
        ),
    })
}

/// Whether the method never asks for a point twice.
fn avoids_repeats(method: &Method) -> bool {
    let method = serde_json::to_value(method).unwrap_or_default();
    method.pointer("/settings/repeats").and_then(serde_json::Value::as_str) == Some("avoid")
}
