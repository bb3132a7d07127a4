//! Initial designs: the points before there is a model.
//!
//! The paper starts from uniform random points. Quasi-random ones leave no part of any axis out: of the first 2^m points
//! exactly one lies in each of 2^m equal parts of each axis.
//!
//! Source of the Sobol points: Burley, *Practical Hash-based Owen Scrambling*, JCGT 2020, as in the crate `sobol_burley`. It has
//! 256 dimensions; further ones take the same dimensions again with another scrambling and another order of the points, so
//! that each axis is stratified and the sets of 256 are independent of each other. It has 2^16 points; trials beyond them are
//! uniform.
//!
//! Cost: some ten nanoseconds a coordinate.

use rand_chacha::rand_core::Rng;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::space::{Point, Space};
use crate::stream::{Purpose, Stream};

/// How the points of an initial design are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Design {
    /// Uniform and independent, as in the paper.
    #[default]
    Uniform,
    /// The point of trial k is point k of a Sobol sequence that is scrambled by the seed of the run.
    Sobol,
}

/// Number of points in the sequence.
const POINTS: u64 = 1 << 16;

impl Design {
    /// The point of this trial, or none where it is just uniform.
    pub(crate) fn point(self, space: &Space, stream: &Stream) -> Result<Option<Point>> {
        match self.unit_point(space.dimension(), stream) {
            Some(uniform) => space.from_uniform(&uniform).map(Some),
            None => Ok(None),
        }
    }

    /// The same in the unit cube of any dimension.
    pub(crate) fn unit_point(self, dimension: usize, stream: &Stream) -> Option<Vec<f64>> {
        if self == Design::Uniform || stream.trial() >= POINTS {
            return None;
        }
        // The scrambling is the run's, not the trial's.
        let mut rng = stream.sibling(0).generator(Purpose::Design);
        let mut uniform = Vec::with_capacity(dimension);
        while uniform.len() < dimension {
            let seed = rng.next_u32();
            let some = (dimension - uniform.len()).min(sobol_burley::NUM_DIMENSIONS as usize);
            let coordinate = |d| f64::from(sobol_burley::sample(stream.trial() as u32, d, seed));
            uniform.extend((0..some as u32).map(coordinate));
        }
        Some(uniform)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Parameter;

    fn points(space: &Space, seed: u64, count: u64) -> Vec<Point> {
        (0..count)
            .map(|trial| Design::Sobol.point(space, &Stream::new(seed, trial)).unwrap().unwrap())
            .collect()
    }

    #[test]
    fn every_axis_is_stratified_also_beyond_256_dimensions() {
        for (dimension, seed) in [(1, 3), (20, 4), (600, 5)] {
            let space = Space::unit_cube(dimension).unwrap();
            let points = points(&space, seed, 256);
            for m in 0..=8 {
                let parts = 1_usize << m;
                for d in 0..dimension {
                    let mut hit = vec![0; parts];
                    for point in &points[..parts] {
                        hit[(point.0[d] * parts as f64) as usize] += 1;
                    }
                    assert!(hit.iter().all(|&hits| hits == 1), "2^{m} points, axis {d}");
                }
            }
        }
    }

    #[test]
    fn the_first_two_axes_are_stratified_together() {
        // 2^m points of a scrambled Sobol sequence have exactly one in each box of 2^−k by 2^(k−m).
        let points = points(&Space::unit_cube(2).unwrap(), 8, 64);
        for k in 0..=6 {
            let (rows, columns) = (1 << k, 64 >> k);
            let mut hit = vec![0; 64];
            for point in &points {
                let part = |d: usize, parts: i32| (point.0[d] * f64::from(parts)) as usize;
                hit[part(0, rows) * columns as usize + part(1, columns)] += 1;
            }
            assert!(hit.iter().all(|&hits| hits == 1), "k = {k}");
        }
    }

    #[test]
    fn sets_of_dimensions_are_independent_of_each_other() {
        // Axes 0 and 256 are the same Sobol dimension: without another scrambling and order they would be equal.
        let points = points(&Space::unit_cube(300).unwrap(), 6, 256);
        for d in 0..44 {
            let moment = |f: &dyn Fn(f64, f64) -> f64| {
                points.iter().map(|p| f(p.0[d] - 0.5, p.0[256 + d] - 0.5)).sum::<f64>() / 256.0
            };
            // The correlation of 256 independent pairs has a standard error of 1/16.
            let correlation = moment(&|a, b| a * b) * 12.0;
            assert!(correlation.abs() < 4.0 / 16.0, "axes {d}: {correlation}");
        }
    }

    #[test]
    fn a_design_is_a_function_of_the_seed() {
        let space = Space::unit_cube(300).unwrap();
        let first = points(&space, 1, 20);
        assert_eq!(points(&space, 1, 20), first);
        let other = points(&space, 2, 20);
        for (a, b) in first.iter().zip(&other) {
            assert!((0..300).filter(|&d| a.0[d] == b.0[d]).count() < 3);
        }
        for a in 0..20 {
            assert!(!first[..a].contains(&first[a]));
        }
    }

    #[test]
    fn mixed_spaces_get_each_level_its_share() {
        let space = Space::new(vec![
            Parameter::categorical("c", ["a", "b", "c", "d"]),
            Parameter::real_log("r", 1e-3, 1e3),
            Parameter::integer("i", 1, 8),
            Parameter::integer("single", 4, 4),
        ])
        .unwrap();
        let points = points(&space, 9, 32);
        for point in &points {
            space.check(point).unwrap();
        }
        for (d, levels) in [(0, 4), (2, 8)] {
            for level in 0..levels {
                let hits = points.iter().filter(|p| space.level(d, p.0[d]) == level).count();
                assert_eq!(hits as u64, 32 / levels, "parameter {d}, level {level}");
            }
        }
    }

    #[test]
    fn uniform_designs_and_trials_beyond_the_sequence_are_left_to_the_caller() {
        let space = Space::unit_cube(2).unwrap();
        let at = |design: Design, trial| design.point(&space, &Stream::new(1, trial)).unwrap();
        assert_eq!(at(Design::Uniform, 0), None);
        assert!(at(Design::Sobol, POINTS - 1).is_some());
        assert_eq!(at(Design::Sobol, POINTS), None);
    }
}
