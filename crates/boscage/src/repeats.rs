//! Not asking for the same point twice.
//!
//! The paper is silent on this. A deterministic objective tells nothing new at a point it was evaluated at, so the
//! default settings replace such a point by the best new one nearby.
//!
//! Cost: a hash of D numbers for each ask; scoring a few dozen neighbours when a point must be replaced.

use rand::RngExt;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::space::{Point, Space};
use crate::stream::Generator;

/// Whether a point may be asked for again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RepeatRule {
    /// Yes, as in the paper: for noisy objectives.
    Allow,
    /// No: a point that was evaluated or is pending is replaced, and a finite space can be exhausted.
    #[default]
    Avoid,
}

/// Neighbours that are scored when a point must be replaced.
const NEIGHBOURS: usize = 64;
/// Random points that are tried after that.
const RANDOM_TRIES: usize = 1000;
/// Spaces of at most this many points are searched one by one in the end.
const ENUMERABLE: u128 = 1 << 20;

/// A set of points.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    points: HashSet<Vec<u64>>,
}

impl Seen {
    fn key(point: &Point) -> Vec<u64> {
        // Adding 0 makes −0 and 0 the same point.
        point.0.iter().map(|x| (x + 0.0).to_bits()).collect()
    }

    pub(crate) fn insert(&mut self, point: &Point) {
        self.points.insert(Self::key(point));
    }

    fn contains(&self, point: &Point) -> bool {
        self.points.contains(&Self::key(point))
    }

    /// These points and the pending ones.
    pub(crate) fn with(&self, pending: &[Point]) -> Known<'_> {
        let new = pending.iter().map(Self::key).filter(|key| !self.points.contains(key));
        Known { seen: self, pending: Seen { points: new.collect() } }
    }
}

/// The points that must not be asked for: evaluated, failed or pending.
#[derive(Debug)]
pub(crate) struct Known<'a> {
    seen: &'a Seen,
    /// Those that are not in `seen`.
    pending: Seen,
}

impl Known<'_> {
    pub(crate) fn contains(&self, point: &Point) -> bool {
        self.seen.contains(point) || self.pending.contains(point)
    }

    /// Refuses a finite space of which nothing is left.
    pub(crate) fn check_exhausted(&self, space: &Space) -> Result<()> {
        match space.size() {
            Some(points)
                if (self.seen.points.len() + self.pending.points.len()) as u128 >= points =>
            {
                Err(Error::SpaceExhausted { points })
            }
            _ => Ok(()),
        }
    }

    /// A point that is not in the set: the given one if it is new, else the best-scored new neighbour (one coordinate
    /// changed), else any new point.
    pub(crate) fn replace(
        &self,
        point: Point,
        space: &Space,
        score: impl Fn(&[Point]) -> Result<Vec<f64>>,
        rng: &mut Generator,
    ) -> Result<Point> {
        if !self.contains(&point) {
            return Ok(point);
        }
        let movable: Vec<usize> =
            (0..space.dimension()).filter(|&d| space.levels(d) != Some(1)).collect();
        let mut neighbours: Vec<Point> = Vec::new();
        for _ in 0..if movable.is_empty() { 0 } else { NEIGHBOURS } {
            let d = movable[rng.random_range(0..movable.len())];
            let mut other = point.clone();
            other.0[d] = match space.levels(d) {
                // Within a tenth of the range.
                None => (point.0[d] + 0.2 * (rng.random::<f64>() - 0.5)).clamp(0.0, 1.0),
                Some(levels) => space.coordinate(d, rng.random_range(0..levels)),
            };
            if !self.contains(&other) {
                neighbours.push(other);
            }
        }
        if !neighbours.is_empty() {
            let scores = score(&neighbours)?;
            let best = (0..neighbours.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b]));
            if let Some(best) = best {
                return Ok(neighbours.swap_remove(best));
            }
        }
        self.any_new(space, rng)
    }

    /// A random point that is not in the set.
    pub(crate) fn any_new(&self, space: &Space, rng: &mut Generator) -> Result<Point> {
        self.check_exhausted(space)?;
        for _ in 0..RANDOM_TRIES {
            let point = space.sample(rng);
            if !self.contains(&point) {
                return Ok(point);
            }
        }
        // Nearly exhausted: from a random place on, one by one.
        let size = space.size().unwrap_or(u128::MAX);
        if size <= ENUMERABLE {
            let offset = rng.random_range(0..size);
            for k in 0..size {
                let point = nth_point(space, (offset + k) % size);
                if !self.contains(&point) {
                    return Ok(point);
                }
            }
        }
        // A thousand random points of a large space were all known: repeating one is better than refusing.
        Ok(space.sample(rng))
    }
}

/// The points of a finite space, counted with the last parameter fastest.
fn nth_point(space: &Space, mut number: u128) -> Point {
    let mut coordinates = vec![0.0; space.dimension()];
    for d in (0..space.dimension()).rev() {
        let levels = u128::from(space.levels(d).unwrap_or(1));
        coordinates[d] = space.coordinate(d, (number % levels) as u64);
        number /= levels;
    }
    Point(coordinates)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Parameter;
    use crate::stream::{Purpose, Stream};

    fn rng() -> Generator {
        Stream::new(1, 0).generator(Purpose::Repeat)
    }

    fn small() -> Space {
        let choices = ["a", "b", "c"];
        Space::new(vec![
            Parameter::integer("i", 0, 3),
            Parameter::categorical("c", choices),
            Parameter::integer("fixed", 5, 5),
        ])
        .unwrap()
    }

    #[test]
    fn new_points_stay_and_known_ones_go_to_the_best_neighbour() {
        let space = small();
        let point = space.sample(&mut rng());
        let mut seen = Seen::default();
        let score = |points: &[Point]| Ok(points.iter().map(|p| p.0[0] + p.0[1]).collect());
        assert_eq!(
            seen.with(&[]).replace(point.clone(), &space, score, &mut rng()).unwrap(),
            point
        );
        seen.insert(&point);
        let other = seen.with(&[]).replace(point.clone(), &space, score, &mut rng()).unwrap();
        let changed = (0..3).filter(|&d| other.0[d] != point.0[d]).count();
        assert_eq!(changed, 1);
        // 64 draws see every neighbour of a space this small, so the best must have been found.
        let want = (1.0 + point.0[1]).max(1.0 + point.0[0]);
        assert!(other.0[0] + other.0[1] >= want - 1e-12);
    }

    #[test]
    fn a_finite_space_is_used_up_to_the_last_point_and_then_says_so() {
        let space = small();
        let mut seen = Seen::default();
        for left in (1..=12).rev() {
            seen.with(&[]).check_exhausted(&space).unwrap();
            let point = seen.with(&[]).any_new(&space, &mut rng()).unwrap();
            assert!(!seen.contains(&point), "{left} points were left");
            seen.insert(&point);
        }
        let refused = seen.with(&[]).any_new(&space, &mut rng()).unwrap_err();
        assert_eq!(refused, Error::SpaceExhausted { points: 12 });
    }

    #[test]
    fn the_last_new_point_is_found_without_luck() {
        // 2^16 points, all but one known: random tries would fail.
        let space =
            Space::new((0..16).map(|i| Parameter::boolean(format!("b{i}"))).collect()).unwrap();
        let mut seen = Seen::default();
        for number in (0..1 << 16).filter(|&n| n != 777) {
            seen.insert(&nth_point(&space, number));
        }
        assert_eq!(seen.with(&[]).any_new(&space, &mut rng()).unwrap(), nth_point(&space, 777));
    }

    #[test]
    fn pending_points_count_once() {
        let space = Space::new(vec![Parameter::boolean("b")]).unwrap();
        let mut seen = Seen::default();
        seen.insert(&Point(vec![0.0]));
        let zeros = vec![Point(vec![0.0]); 3];
        assert_eq!(seen.with(&zeros).any_new(&space, &mut rng()).unwrap(), Point(vec![1.0]));
        let both = [Point(vec![0.0]), Point(vec![1.0]), Point(vec![1.0])];
        assert!(seen.with(&both).check_exhausted(&space).is_err());
    }

    #[test]
    fn minus_zero_is_zero() {
        let mut seen = Seen::default();
        seen.insert(&Point(vec![0.0, 1.0]));
        assert!(seen.contains(&Point(vec![-0.0, 1.0])));
    }
}
