//! Maximising the joint upper confidence bound μ(x) + κσ(x), where σ is the standard deviation of the whole sum.
//!
//! Not in the paper, whose additive bound Σ_G (μ^G + √β σ^G) counts the uncertainty of each component separately and so
//! over-explores by up to the square root of their number. The joint bound does not decompose, so it is climbed from
//! several starts instead: the exact maximum of the posterior mean by message passing on a fine random grid, the maximum
//! of the additive bound, and the best observed points. Where tables would be too large (more than four variables that depend on
//! each other), random points take the place of message passing. Where all pairs interact ([`crate::all_pairs`]) the mean is climbed
//! by one coordinate after the other instead, and points with some coordinates drawn anew are tried besides. A search may be
//! confined to a box.
//!
//! Notation: κ ≥ 0 is the weight of the uncertainty.
//!
//! Cost: a fine table of means (D·M²·n multiply-adds for M values an axis), one coarse level of the additive bound, about a
//! hundred joint gradients (n² + D·n each), and for finite parameters up to 512 joint values a climb.

use rand::RngExt;
use rand::seq::SliceRandom;

use crate::acquisition::{PosteriorMean, Ucb};
use crate::additive_gp::{AdditivePosterior, Normal};
use crate::error::Result;
use crate::failures::Success;
use crate::graph::{Component, Graph};
use crate::message_passing::{
    Grid, Maximum, Zoom, elimination_scopes, largest_table, msg_passing_continuous,
    msg_passing_discrete,
};
use crate::quasi_newton::minimize_in_box;
use crate::simd;
use crate::space::{Point, Space};
use crate::stream::Generator;
use crate::stretch::{coordinate_of, seen, slope_at};

/// Values an axis of the fine grid has, besides those of the best observed points.
const FINE: usize = 16;
/// Observed points that are started from: those with the highest posterior mean.
const OBSERVED: usize = 3;
/// Starts that are climbed from.
const CLIMBS: usize = 3;
/// Values of φ^G that the tables for starts may have in sum, and entries of the largest that message passing goes through: four
/// variables of the fine grid.
const TABLE_VALUES: u128 = 1 << 23;
const LARGEST_TABLE: u128 = 1 << 17;
/// Where tables would be larger: random points to start from, and how many starts are climbed from.
const RANDOM_STARTS: usize = 512;
const RANDOM_CLIMBS: usize = 8;
/// Where all pairs interact: how often climbing by coordinates goes around, how many starts are made from the best ones by drawing
/// some coordinates anew, and how many coordinates that are.
const SWEEPS: usize = 3;
const PERTURBED: usize = 64;
const MOVED: [usize; 4] = [1, 2, 5, 20];
/// With more observations than this only the best start is climbed from there: a gradient costs n².
const MANY: usize = 400;
/// How often κ is doubled at most, where what is climbed to is no news.
const DOUBLINGS: usize = 4;
/// Evaluations of the joint bound and its gradient for each climb.
const CLIMB_EVALUATIONS: usize = 40;

/// Single changes of finite coordinates that a climb looks at, at most; more are thinned out at random.
const CHANGES: usize = 512;

fn bound(normal: Normal, kappa: f64) -> f64 {
    normal.mean + kappa * normal.variance.sqrt()
}

type Known = (Normal, Option<f64>);

/// What is climbed: the joint bound U of a posterior or, where points fail, q + p (U − q) with the chance p of success.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Objective<'a> {
    pub(crate) posterior: &'a AdditivePosterior,
    success: Option<(&'a Success, f64)>,
}

impl<'a> Objective<'a> {
    pub(crate) fn new(posterior: &'a AdditivePosterior, success: Option<&'a Success>) -> Self {
        Self { posterior, success: success.map(|success| (success, posterior.lowest())) }
    }

    /// What is known of points: f and, where points fail, the chance that these do not.
    fn known(&self, points: &[Point]) -> Result<Vec<Known>> {
        let normals = self.posterior.joint_many(points)?.into_iter();
        Ok(match self.success {
            None => normals.map(|normal| (normal, None)).collect(),
            Some((success, _)) => {
                normals.zip(success.chances(points)?.into_iter().map(Some)).collect()
            }
        })
    }

    fn value(&self, (normal, chance): Known, kappa: f64) -> f64 {
        let bound = bound(normal, kappa);
        match (self.success, chance) {
            (Some((_, q)), Some(p)) => q + p * (bound - q),
            _ => bound,
        }
    }

    fn value_at(&self, point: &Point, kappa: f64) -> Result<f64> {
        let normal = self.posterior.joint(point)?;
        let chance = self.success.map(|(success, _)| success.chance(point)).transpose()?;
        Ok(self.value((normal, chance), kappa))
    }

    /// The value and its gradient.
    fn gradient(&self, point: &Point, kappa: f64) -> Result<(f64, Vec<f64>)> {
        let joint = self.posterior.joint_gradient(point)?;
        let std = joint.normal.variance.sqrt();
        // At an observed point without noise the deviation is 0 and has no gradient.
        let weight = if std > 0.0 { 0.5 * kappa / std } else { 0.0 };
        let gradients = joint.mean_gradient.iter().zip(&joint.variance_gradient);
        let gradient = gradients.map(|(mean, variance)| mean + weight * variance);
        let bound = bound(joint.normal, kappa);
        let Some((success, q)) = self.success else { return Ok((bound, gradient.collect())) };
        let (p, slopes) = success.chance_gradient(point)?;
        let gradient = gradient.zip(slopes).map(|(slope, of_p)| p * slope + of_p * (bound - q));
        Ok((q + p * (bound - q), gradient.collect()))
    }
}

/// The least and the largest coordinate of each variable: where to search.
pub(crate) type Region = [(f64, f64)];

/// The region that is the whole space.
pub(crate) fn everywhere(space: &Space) -> Vec<(f64, f64)> {
    vec![(0.0, 1.0); space.dimension()]
}

/// How hard to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// From all starts that are worth a climb.
    Full,
    /// From half of them: of points that several workers get at once not each has to be the very best, and an ask of eight has to
    /// wait for all.
    Half,
}

impl Effort {
    /// For an ask with so many points pending.
    pub(crate) fn with_pending(count: usize) -> Self {
        if count == 0 { Effort::Full } else { Effort::Half }
    }
}

/// The point of the region that maximises the joint bound, as far as climbing from good starts finds it.
pub(crate) fn maximize_joint_ucb(
    objective: Objective<'_>,
    space: &Space,
    region: &Region,
    kappa: f64,
    effort: Effort,
    rng: &mut Generator,
) -> Result<Maximum> {
    Ok(maximize_for_news(objective, space, region, kappa, |_| Ok(true), effort, rng)?.0)
}

/// The same, but with more weight on the uncertainty where all is known: while what is climbed to from the best start is no news, κ
/// (or 1, if it is less) is doubled, up to `DOUBLINGS` times. The last κ comes with it. (Another start may then lead higher, to what
/// is known: one climb for each κ is what makes this cheap.)
pub(crate) fn maximize_for_news(
    objective: Objective<'_>,
    space: &Space,
    region: &Region,
    mut kappa: f64,
    is_news: impl Fn(&Point) -> Result<bool>,
    effort: Effort,
    rng: &mut Generator,
) -> Result<(Maximum, f64)> {
    // Where climbs may start does not depend on κ, only which starts are the best.
    let Starts { points, climbs, evaluations } = starts(objective.posterior, space, region, rng)?;
    let climbs = if effort == Effort::Half { climbs.div_ceil(2) } else { climbs };
    let known = objective.known(&points)?;
    let ranked = |kappa: f64| {
        let mut ranked: Vec<(f64, &Point)> =
            known.iter().map(|&known| objective.value(known, kappa)).zip(&points).collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        ranked.into_iter().take(climbs).map(|(_, start)| start.clone())
    };
    let mut to_climb = ranked(kappa);
    let mut best = match to_climb.next() {
        Some(start) => climb(objective, space, region, kappa, start, rng)?,
        None => (f64::NAN, space.sample(rng)),
    };
    for _ in 0..DOUBLINGS {
        if is_news(&best.1)? {
            break;
        }
        kappa = 2.0 * kappa.max(1.0);
        to_climb = ranked(kappa);
        if let Some(start) = to_climb.next() {
            best = climb(objective, space, region, kappa, start, rng)?;
        }
    }
    for start in to_climb {
        let climbed = climb(objective, space, region, kappa, start, rng)?;
        if climbed.0 > best.0 {
            best = climbed;
        }
    }
    Ok((Maximum { value: best.0, point: best.1, evaluations }, kappa))
}

/// Where climbs may start.
struct Starts {
    points: Vec<Point>,
    /// How many of them, the best, are climbed from.
    climbs: usize,
    evaluations: usize,
}

/// The best observations, and what message passing or climbing by coordinates makes of the posterior; elsewhere random points.
fn starts(
    posterior: &AdditivePosterior,
    space: &Space,
    region: &Region,
    rng: &mut Generator,
) -> Result<Starts> {
    let mut starts: Vec<Point> = posterior
        .best_observed(OBSERVED)
        .into_iter()
        .map(|point| move_into(space, region, point))
        .collect::<Result<_>>()?;
    let stretches = &posterior.prior().kernel.stretches;
    let grid = fine_grid(space, stretches, region, &starts, rng)?;
    let components = &posterior.prior().components;
    let (mut evaluations, mut climbs) = (0, CLIMBS);
    if posterior.prior().all_pairs.is_some() {
        // All pairs are no forest. What message passing finds exactly there is climbed to here.
        climbs = if posterior.len() > MANY { 1 } else { CLIMBS };
        let random = move_into(space, region, sample_seen(space, stretches, rng))?;
        let factors = posterior.axis_factors(&grid);
        for start in [starts[0].clone(), random] {
            let climbed = climb_coordinates(posterior, &grid, &factors, start)?;
            evaluations += climbed.evaluations;
            starts.push(climbed.point);
        }
        for k in 0..PERTURBED {
            let mut point = starts[k % (OBSERVED + 2).min(starts.len())].clone();
            let other = move_into(space, region, sample_seen(space, stretches, rng))?;
            for _ in 0..MOVED[k * MOVED.len() / PERTURBED].min(space.dimension()) {
                let d = rng.random_range(0..space.dimension());
                point.0[d] = other.0[d];
            }
            starts.push(point);
        }
    } else if tables_are_small(components, &grid)? {
        let by_mean = msg_passing_discrete(&PosteriorMean { posterior }, &grid)?;
        evaluations += by_mean.evaluations;
        starts.push(by_mean.point);
        let by_bound = msg_passing_continuous(
            &Ucb { posterior, beta: 1.0 },
            space,
            Zoom { grid_size: 4, levels: 1 },
            rng,
        )?;
        evaluations += by_bound.evaluations;
        starts.push(move_into(space, region, by_bound.point)?);
    } else {
        for _ in 0..RANDOM_STARTS {
            starts.push(sample_in(space, stretches, region, rng)?);
        }
        climbs = RANDOM_CLIMBS;
        // The bound at a start has a value of every component.
        evaluations += starts.len() * components.len();
    }
    Ok(Starts { points: starts, climbs, evaluations })
}

/// Whether message passing on the grid is worth its cost, which is exponential in the number of variables of a component.
fn tables_are_small(components: &[Component], grid: &Grid) -> Result<bool> {
    let size = |i: usize| grid.axis(i).len() as u64;
    let values = components
        .iter()
        .fold(0_u128, |sum, g| sum.saturating_add(largest_table(&[g.variables().to_vec()], size)));
    let scopes = elimination_scopes(&Graph::from_components(grid.dimension(), components)?);
    Ok(values <= TABLE_VALUES && largest_table(&scopes, size) <= LARGEST_TABLE)
}

/// The point of the region that is next to this one; finite coordinates stay where they are if nothing is nearer.
fn move_into(space: &Space, region: &Region, mut point: Point) -> Result<Point> {
    for (d, (x, &(low, high))) in point.0.iter_mut().zip(region).enumerate() {
        if !space.is_categorical(d) {
            *x = x.clamp(low, high);
        }
    }
    space.snap(&point.0)
}

/// A random point, uniform in what is seen through the stretches; to be snapped.
fn sample_seen(space: &Space, stretches: &[f64], rng: &mut Generator) -> Point {
    let mut point = space.sample(rng);
    for (d, x) in point.0.iter_mut().enumerate().filter(|(d, _)| !space.is_categorical(*d)) {
        *x = coordinate_of(stretches, d, *x);
    }
    point
}

/// A random point of the region, uniform in what is seen.
fn sample_in(
    space: &Space,
    stretches: &[f64],
    region: &Region,
    rng: &mut Generator,
) -> Result<Point> {
    let mut point = space.sample(rng);
    for (d, (x, range)) in point.0.iter_mut().zip(region).enumerate() {
        if !space.is_categorical(d) {
            *x = between(stretches, d, range, *x);
        }
    }
    move_into(space, region, point)
}

/// The coordinate of variable d at this share of the way from one to another, as it is seen.
fn between(stretches: &[f64], d: usize, &(low, high): &(f64, f64), share: f64) -> f64 {
    let (low, high) = (seen(stretches, d, low), seen(stretches, d, high));
    coordinate_of(stretches, d, low + (high - low) * share)
}

/// Climbs the posterior mean by one coordinate after the other: each is set to the best value of its axis, until nothing changes
/// or for `SWEEPS` times around.
///
/// The mean is linear in every factor, but for what all variables do alike: μ = A + Σ_a B_i(a) α_a e_i(a) + g(x_i), so that a value
/// of a coordinate costs one product with its factors (`axes`, of the grid), which are the same in all sweeps and for all starts.
fn climb_coordinates(
    posterior: &AdditivePosterior,
    grid: &Grid,
    axes: &[Vec<f64>],
    start: Point,
) -> Result<Climbed> {
    let mut point = start;
    let mut evaluations = 0;
    let n = posterior.len().max(1);
    for _ in 0..SWEEPS {
        let mut moving = posterior.moving(&point)?;
        let mut has_changed = false;
        for (i, factors) in axes.iter().enumerate() {
            let weights = moving.weights(i);
            let mut best =
                simd::dot(&weights, moving.factor(i)) + moving.common_mean(i, point.0[i]);
            let mut chosen = None;
            for (r, factor) in factors.chunks_exact(n).enumerate() {
                let mean = simd::dot(&weights, factor) + moving.common_mean(i, grid.axis(i)[r]);
                // More than rounding can make of equal numbers.
                if mean > best + 1e-12 * (1.0 + best.abs()) {
                    (best, chosen) = (mean, Some(r));
                }
            }
            evaluations += grid.axis(i).len();
            if let Some(r) = chosen {
                point.0[i] = grid.axis(i)[r];
                moving.set(i, &factors[r * n..(r + 1) * n]);
                has_changed = true;
            }
        }
        if !has_changed {
            break;
        }
    }
    Ok(Climbed { point, evaluations })
}

/// Where climbing by coordinates has ended.
struct Climbed {
    point: Point,
    evaluations: usize,
}

/// A random grid in a region: FINE values an axis, one in each of as many cells that are seen as equal, and the values of the given
/// points.
fn fine_grid(
    space: &Space,
    stretches: &[f64],
    region: &Region,
    observed: &[Point],
    rng: &mut Generator,
) -> Result<Grid> {
    let axes = (0..space.dimension())
        .map(|d| {
            let (low, high) = region[d];
            let mut axis: Vec<f64> = match space.levels(d) {
                Some(levels) if levels <= FINE as u64 => (0..levels)
                    .map(|level| space.coordinate(d, level))
                    .filter(|&x| space.is_categorical(d) || (low..=high).contains(&x))
                    .collect(),
                levels => (0..FINE)
                    .map(|k| {
                        let share = (k as f64 + rng.random::<f64>()) / FINE as f64;
                        let x = between(stretches, d, &region[d], share);
                        match levels {
                            None => x,
                            Some(_) => space.coordinate(d, space.level(d, x)),
                        }
                    })
                    .collect(),
            };
            axis.extend(observed.iter().map(|point| point.0[d]));
            axis.sort_unstable_by(f64::total_cmp);
            axis.dedup();
            axis
        })
        .collect();
    Grid::new(axes)
}

/// Climbs the joint bound: all ordered coordinates together by gradient, as they are seen, then each finite coordinate by itself.
fn climb(
    objective: Objective<'_>,
    space: &Space,
    region: &Region,
    kappa: f64,
    start: Point,
    rng: &mut Generator,
) -> Result<(f64, Point)> {
    let dimension = space.dimension();
    let moves: Vec<bool> = (0..dimension)
        .map(|d| !space.is_categorical(d) && space.levels(d).is_none_or(|levels| levels > 2))
        .collect();
    let stretches = &objective.posterior.prior().kernel.stretches;
    // Of the coordinates that move; what is seen of others is not looked at.
    let see = |d: usize, x: f64| if moves[d] { seen(stretches, d, x) } else { x };
    let point_of = |w: &[f64]| {
        let coordinate = |(d, &w): (usize, &f64)| match moves[d] {
            true => coordinate_of(stretches, d, w).clamp(region[d].0, region[d].1),
            false => w,
        };
        Point(w.iter().enumerate().map(coordinate).collect())
    };
    let edge = |of: &dyn Fn(&(f64, f64)) -> f64| -> Vec<f64> {
        let edge = |d: usize| if moves[d] { see(d, of(&region[d])) } else { start.0[d] };
        (0..dimension).map(edge).collect()
    };
    let minimum = minimize_in_box(
        |w| match objective.gradient(&point_of(w), kappa) {
            Err(_) => (f64::INFINITY, vec![0.0; dimension]),
            Ok((value, mut gradient)) => {
                for (d, (slope, &w)) in gradient.iter_mut().zip(w).enumerate() {
                    *slope = if moves[d] { -*slope / slope_at(stretches, d, w) } else { -*slope };
                }
                (-value, gradient)
            }
        },
        &start.0.iter().enumerate().map(|(d, &x)| see(d, x)).collect::<Vec<f64>>(),
        &edge(&|range| range.0),
        &edge(&|range| range.1),
        CLIMB_EVALUATIONS,
    );
    let mut point = space.snap(&point_of(&minimum.point).0)?;
    let mut value = objective.value_at(&point, kappa)?;
    let first = objective.value_at(&start, kappa)?;
    if first > value {
        (value, point) = (first, start);
    }
    // Snapping may have moved ordered levels off their best, and categories have not moved at all.
    let mut candidates = Vec::new();
    for d in (0..dimension).filter(|&d| space.levels(d).is_some_and(|levels| levels > 1)) {
        let levels = space.levels(d).unwrap_or(1);
        let now = space.level(d, point.0[d]);
        let others: Vec<u64> = if levels <= 16 {
            (0..levels).filter(|&level| level != now).collect()
        } else {
            let random = |rng: &mut Generator| rng.random_range(0..levels);
            [now.saturating_sub(1), (now + 1).min(levels - 1), random(rng), random(rng)].to_vec()
        };
        let inside = |x: f64| space.is_categorical(d) || (region[d].0..=region[d].1).contains(&x);
        let others = others.into_iter().map(|level| (d, space.coordinate(d, level)));
        candidates.extend(others.filter(|&(_, x)| inside(x)));
    }
    if candidates.len() > CHANGES {
        candidates.shuffle(rng);
        candidates.truncate(CHANGES);
    }
    let changed = |&(d, coordinate): &(usize, f64)| {
        let mut other = point.clone();
        other.0[d] = coordinate;
        other
    };
    let points: Vec<Point> = candidates.iter().map(changed).collect();
    let mut gains: Vec<(f64, usize, f64)> = objective
        .known(&points)?
        .into_iter()
        .zip(&candidates)
        .map(|(known, &(d, coordinate))| (objective.value(known, kappa) - value, d, coordinate))
        .filter(|gain| gain.0 > 0.0)
        .collect();
    gains.sort_by(|a, b| b.0.total_cmp(&a.0));
    // The best single changes, one after the other, as long as they still help together.
    for (_, d, coordinate) in gains.into_iter().take(2 * dimension.min(32)) {
        let mut other = point.clone();
        other.0[d] = coordinate;
        let changed = objective.value_at(&other, kappa)?;
        if changed > value {
            (value, point) = (changed, other);
        }
    }
    Ok((value, point))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::additive_gp::{AdditivePrior, Dataset};
    use crate::all_pairs::AllPairs;
    use crate::common_effect::SameChoices;
    use crate::failures::LearnedSuccess;
    use crate::graph::Component;
    use crate::kernel::{Kernel, KernelFamily, Metric};
    use crate::space::Parameter;
    use crate::stream::{Purpose, Stream};

    const KAPPA: f64 = 2.0;

    fn posterior(space: &Space, components: Vec<Component>, n: usize) -> AdditivePosterior {
        let dimension = space.dimension();
        let mut kernel = Kernel::uniform(KernelFamily::Rbf, dimension, 0.3, 0.5);
        for d in (0..dimension).filter(|&d| space.is_categorical(d)) {
            kernel.metrics[d] = Metric::Categorical;
        }
        let mut rng = Stream::new(3, 0).generator(Purpose::Problem);
        let mut data = Dataset::empty(dimension);
        for _ in 0..n {
            let point = space.sample(&mut rng);
            let y: f64 = point.0.iter().enumerate().map(|(i, x)| (5.0 * x + i as f64).sin()).sum();
            data.push(&point, y + point.0[0] * point.0[dimension - 1]).unwrap();
        }
        AdditivePrior {
            components,
            kernel,
            noise_std: 0.1,
            all_pairs: None,
            constant: 0.0,
            common_std: 0.0,
        }
        .condition(&data)
        .unwrap()
    }

    fn pair(i: usize, j: usize) -> Component {
        Component::new(vec![i, j]).unwrap()
    }

    /// The largest bound over the points of a product of axes.
    fn brute_force(posterior: &AdditivePosterior, axes: &[Vec<f64>]) -> f64 {
        let size: usize = axes.iter().map(Vec::len).product();
        let point = |mut number: usize| {
            let coordinate = |axis: &Vec<f64>| {
                let value = axis[number % axis.len()];
                number /= axis.len();
                value
            };
            Point(axes.iter().map(coordinate).collect())
        };
        let bounds = (0..size).map(|k| bound(posterior.joint(&point(k)).unwrap(), KAPPA));
        bounds.fold(f64::NEG_INFINITY, f64::max)
    }

    /// Where nothing fails.
    fn alone(posterior: &AdditivePosterior) -> Objective<'_> {
        Objective::new(posterior, None)
    }

    /// Of the whole space, with all effort.
    fn maximum(posterior: &AdditivePosterior, space: &Space, rng: &mut Generator) -> Maximum {
        let region = everywhere(space);
        maximize_joint_ucb(alone(posterior), space, &region, KAPPA, Effort::Full, rng).unwrap()
    }

    /// The upper third of the first axis fails.
    fn success(space: &Space) -> Success {
        let (mut succeeded, mut failed) = (Dataset::empty(space.dimension()), Vec::new());
        for k in 0..40 {
            let point = space.sample(&mut Stream::new(8, k).generator(Purpose::Problem));
            match point.0[0] < 0.67 {
                true => succeeded.push(&point, 0.0).unwrap(),
                false => failed.push(point),
            }
        }
        let prior = posterior(space, vec![pair(0, 1), pair(1, 2)], 5).prior().clone();
        Success::new(&LearnedSuccess { prior, probability: 0.9 }, &succeeded, &failed).unwrap()
    }

    #[test]
    fn where_points_fail_the_bound_counts_by_its_chance() {
        let space = Space::unit_cube(3).unwrap();
        let mut posterior = posterior(&space, vec![pair(0, 1), pair(1, 2)], 15);
        // 7, 14, 6, 13, …
        let outcomes: Vec<f64> = (1..=15).map(|a| f64::from(7 * a % 15) - 4.0).collect();
        posterior.set_outcomes(&outcomes).unwrap();
        let q = -4.0;
        let success = success(&space);
        let objective = Objective::new(&posterior, Some(&success));
        let mut rng = Stream::new(3, 0).generator(Purpose::Problem);
        let points: Vec<Point> = (0..10).map(|_| space.sample(&mut rng)).collect();
        let known = objective.known(&points).unwrap();
        for (point, known) in points.iter().zip(known) {
            let p = success.chance(point).unwrap();
            let u = bound(posterior.joint(point).unwrap(), KAPPA);
            let (value, gradient) = objective.gradient(point, KAPPA).unwrap();
            for found in
                [value, objective.value_at(point, KAPPA).unwrap(), objective.value(known, KAPPA)]
            {
                assert!((found - (p * u + (1.0 - p) * q)).abs() < 1e-9, "{found}");
            }
            for (d, &found) in gradient.iter().enumerate() {
                let at = |step: f64| {
                    let mut moved = point.clone();
                    moved.0[d] += step;
                    objective.value_at(&moved, KAPPA).unwrap()
                };
                let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
                assert!((slope - found).abs() < 1e-4 * (1.0 + slope.abs()), "{slope} {found}");
            }
        }
        // What is climbed to is as high as the best of a dense grid.
        let axis: Vec<f64> = (0..21).map(|k| f64::from(k) / 20.0).collect();
        let grid: Vec<Point> = (0..21_usize.pow(3))
            .map(|k| Point(vec![axis[k % 21], axis[k / 21 % 21], axis[k / 441]]))
            .collect();
        let values = objective.known(&grid).unwrap().into_iter();
        let want =
            values.map(|known| objective.value(known, KAPPA)).fold(f64::NEG_INFINITY, f64::max);
        let region = everywhere(&space);
        let found =
            maximize_joint_ucb(objective, &space, &region, KAPPA, Effort::Full, &mut rng).unwrap();
        assert_eq!(found.value, objective.value_at(&found.point, KAPPA).unwrap());
        assert!(found.value > want - 0.05, "{} against {want}", found.value);
    }

    #[test]
    fn kappa_is_doubled_from_one_at_least_until_there_is_news() {
        let space = Space::unit_cube(3).unwrap();
        let posterior = posterior(&space, vec![pair(0, 1), pair(1, 2)], 15);
        let search = |kappa: f64, doublings: usize| {
            let left = std::cell::Cell::new(doublings);
            let is_news = |_: &Point| {
                let is_news = left.get() == 0;
                left.set(left.get().saturating_sub(1));
                Ok(is_news)
            };
            let mut rng = Stream::new(1, 0).generator(Purpose::Zoom);
            let region = everywhere(&space);
            maximize_for_news(
                alone(&posterior),
                &space,
                &region,
                kappa,
                is_news,
                Effort::Full,
                &mut rng,
            )
            .unwrap()
        };
        let kappas = |kappa: f64| [0, 1, 2, 9].map(|doublings| search(kappa, doublings).1);
        assert_eq!(kappas(2.0), [2.0, 4.0, 8.0, 32.0]);
        assert_eq!(kappas(0.5), [0.5, 2.0, 4.0, 16.0]);
        assert_eq!(kappas(0.0), [0.0, 2.0, 4.0, 16.0]);
    }

    #[test]
    fn real_spaces_are_climbed_to_the_maximum_of_a_dense_grid() {
        let space = Space::unit_cube(3).unwrap();
        let components = vec![pair(0, 1), pair(1, 2)];
        let axis: Vec<f64> = (0..41).map(|k| f64::from(k) / 40.0).collect();
        for n in [5, 15, 40] {
            let posterior = posterior(&space, components.clone(), n);
            let want = brute_force(&posterior, &vec![axis.clone(); 3]);
            let mut rng = Stream::new(1, n as u64).generator(Purpose::Zoom);
            let found = maximum(&posterior, &space, &mut rng);
            space.check(&found.point).unwrap();
            assert_eq!(found.value, bound(posterior.joint(&found.point).unwrap(), KAPPA));
            // Climbing ends in a maximum; of the few there are it must be the highest, or nearly as high.
            assert!(found.value > want - 0.05, "n = {n}: {} against {want}", found.value);
            assert!(found.evaluations > 0);
        }
    }

    #[test]
    fn finite_spaces_are_climbed_to_the_best_of_all_points() {
        let space = Space::new(vec![
            Parameter::integer("i", 0, 5),
            Parameter::categorical("c", ["a", "b", "c", "d"]),
            Parameter::ordinal("o", (0..25).map(f64::from).collect::<Vec<_>>()),
            Parameter::boolean("b"),
        ])
        .unwrap();
        let axes: Vec<Vec<f64>> = (0..4)
            .map(|d| (0..space.levels(d).unwrap()).map(|l| space.coordinate(d, l)).collect())
            .collect();
        let components = vec![pair(0, 1), pair(1, 2), pair(2, 3)];
        let posterior = posterior(&space, components, 20);
        let want = brute_force(&posterior, &axes);
        for seed in 0..10 {
            let mut rng = Stream::new(seed, 0).generator(Purpose::Zoom);
            let found = maximum(&posterior, &space, &mut rng);
            space.check(&found.point).unwrap();
            assert!(found.value <= want + 1e-9);
            assert!(found.value > want - 0.1, "seed {seed}: {} against {want}", found.value);
        }
    }

    #[test]
    fn where_tables_would_be_too_large_random_starts_take_their_place() {
        let grid: Vec<Component> = (0..25)
            .flat_map(|i| [(i % 5 < 4).then_some((i, i + 1)), (i < 20).then_some((i, i + 5))])
            .flatten()
            .map(|(i, j)| pair(i, j))
            .collect();
        // One component of six variables; a grid of pairs, whose eliminations have six variables and more.
        for (dimension, components) in
            [(6, vec![Component::new((0..6).collect()).unwrap()]), (25, grid)]
        {
            let space = Space::unit_cube(dimension).unwrap();
            let posterior = posterior(&space, components.clone(), 30);
            let axes = vec![(0..FINE + OBSERVED).map(|k| k as f64).collect(); dimension];
            assert!(!tables_are_small(&components, &Grid::new(axes).unwrap()).unwrap());
            let mut rng = Stream::new(5, 0).generator(Purpose::Zoom);
            let found = maximum(&posterior, &space, &mut rng);
            space.check(&found.point).unwrap();
            assert_eq!(found.evaluations, (RANDOM_STARTS + OBSERVED) * components.len());
            // Better than many more random points than it started from.
            let mut rng = Stream::new(6, 0).generator(Purpose::Problem);
            let others: Vec<Point> = (0..20_000).map(|_| space.sample(&mut rng)).collect();
            let others = posterior.joint_many(&others).unwrap().into_iter();
            let best = others.map(|normal| bound(normal, KAPPA)).fold(f64::NEG_INFINITY, f64::max);
            assert!(found.value > best, "{} against {best}", found.value);
        }
        // Forests are never too large, whatever their size, nor are up to four variables.
        let axes =
            |dimension| Grid::new(vec![(0..19).map(f64::from).collect(); dimension]).unwrap();
        let path: Vec<Component> = (1..1000).map(|i| pair(i - 1, i)).collect();
        assert!(tables_are_small(&path, &axes(1000)).unwrap());
        let four = [Component::new(vec![0, 1, 2, 3]).unwrap()];
        assert!(tables_are_small(&four, &axes(4)).unwrap());
    }

    #[test]
    fn a_climb_never_ends_below_its_start() {
        let space = Space::new(vec![
            Parameter::real("x", 0.0, 1.0),
            Parameter::categorical("c", ["a", "b", "c"]),
            Parameter::integer("i", 0, 100),
        ])
        .unwrap();
        let posterior = posterior(&space, vec![pair(0, 1), pair(1, 2)], 12);
        let mut rng = Stream::new(2, 0).generator(Purpose::Zoom);
        for _ in 0..20 {
            let start = space.sample(&mut rng);
            let before = bound(posterior.joint(&start).unwrap(), KAPPA);
            let (value, point) =
                climb(alone(&posterior), &space, &everywhere(&space), KAPPA, start, &mut rng)
                    .unwrap();
            space.check(&point).unwrap();
            assert!(value >= before);
            assert_eq!(value, bound(posterior.joint(&point).unwrap(), KAPPA));
        }
    }

    #[test]
    fn fine_grids_hold_small_domains_whole_and_the_observed_values() {
        let space = Space::new(vec![
            Parameter::real("x", 0.0, 1.0),
            Parameter::integer("small", 0, 4),
            Parameter::integer("large", 0, 1000),
        ])
        .unwrap();
        let mut rng = Stream::new(4, 0).generator(Purpose::Zoom);
        let observed = [space.sample(&mut rng)];
        let grid = fine_grid(&space, &[], &everywhere(&space), &observed, &mut rng).unwrap();
        assert_eq!(grid.axis(1), [0.0, 0.25, 0.5, 0.75, 1.0]);
        for d in 0..3 {
            assert!(grid.axis(d).contains(&observed[0].0[d]));
            assert!(grid.axis(d).is_sorted() && grid.axis(d).len() <= FINE + 1);
        }
        for &x in grid.axis(2) {
            assert_eq!(x, space.coordinate(2, space.level(2, x)));
        }
        // One value in each of FINE equal cells, besides the observed one.
        let is_even =
            |axis: &[f64]| (0..FINE).all(|k| axis.iter().any(|x| (x * FINE as f64) as usize == k));
        assert!(is_even(grid.axis(0)));
        // With stretches the cells are equal as they are seen, from where the region begins to where it ends.
        let stretches = [1e4, 1.0, 1.0];
        let region = [(1e-5, 0.1), (0.0, 1.0), (0.0, 1.0)];
        let grid = fine_grid(&space, &stretches, &region, &[], &mut rng).unwrap();
        let [low, high] = [1e-5, 0.1].map(|x| seen(&stretches, 0, x));
        let share = |&x: &f64| (seen(&stretches, 0, x) - low) / (high - low);
        assert!(is_even(&grid.axis(0).iter().map(share).collect::<Vec<f64>>()));
        assert!(!is_even(&grid.axis(0).iter().map(|x| (x - 1e-5) / 0.1).collect::<Vec<f64>>()));
    }

    #[test]
    fn random_points_are_uniform_in_what_is_seen() {
        let space = Space::new(vec![
            Parameter::real("x", 0.0, 1.0),
            Parameter::real("y", 0.0, 1.0),
            Parameter::categorical("c", ["a", "b", "c"]),
        ])
        .unwrap();
        let stretches = [1e3, 0.01, 50.0];
        let region = [(1e-3, 0.5), (0.2, 1.0), (0.0, 1.0)];
        let mut rng = Stream::new(4, 1).generator(Purpose::Zoom);
        let mut everywhere = [0.0; 2];
        let mut inside = [0.0; 2];
        for _ in 0..4000 {
            let anywhere = sample_seen(&space, &stretches, &mut rng);
            let point = sample_in(&space, &stretches, &region, &mut rng).unwrap();
            space.check(&point).unwrap();
            for d in 0..2 {
                let see = |x: f64| seen(&stretches, d, x);
                let (low, high) = (see(region[d].0), see(region[d].1));
                let share = (see(point.0[d]) - low) / (high - low);
                assert!((-1e-9..=1.0 + 1e-9).contains(&share), "{share}");
                everywhere[d] += see(anywhere.0[d]) / 4000.0;
                inside[d] += share / 4000.0;
            }
        }
        // The mean of 4,000 uniform numbers is ½, four standard errors are 0.018.
        for mean in everywhere.into_iter().chain(inside) {
            assert!((mean - 0.5).abs() < 0.018, "{everywhere:?} {inside:?}");
        }
    }

    #[test]
    fn stretched_bounds_are_climbed_to_the_best_of_what_is_seen() {
        // What matters is all below 0.01 of the first two ranges.
        let space = Space::unit_cube(3).unwrap();
        let z = |x: f64| (x + 1e-4).log10() + 3.0;
        let mut kernel = Kernel::uniform(KernelFamily::Matern52, 3, 0.3, 0.3);
        kernel.stretches = vec![1e4, 1e4, 1.0];
        let prior = AdditivePrior {
            components: (0..3).map(Component::single).collect(),
            kernel,
            noise_std: 0.05,
            all_pairs: Some(AllPairs { weights: vec![0.5; 3] }),
            constant: 1.0,
            common_std: 0.0,
        };
        let mut rng = Stream::new(3, 0).generator(Purpose::Problem);
        let mut data = Dataset::empty(3);
        for _ in 0..40 {
            let point = sample_seen(&space, &prior.kernel.stretches, &mut rng);
            let x = &point.0;
            let y = -z(x[0]).powi(2) - z(x[1]).powi(2) - z(x[0]) * z(x[1]) + x[2];
            data.push(&point, y).unwrap();
        }
        let posterior = prior.condition(&data).unwrap();
        let stretches = &posterior.prior().kernel.stretches;
        for region in [everywhere(&space), vec![(1e-5, 1e-3), (0.0, 0.05), (0.3, 0.7)]] {
            let axis = |d: usize| -> Vec<f64> {
                (0..=30).map(|k| between(stretches, d, &region[d], f64::from(k) / 30.0)).collect()
            };
            let want = brute_force(&posterior, &[axis(0), axis(1), axis(2)]);
            for seed in 0..5 {
                let mut rng = Stream::new(seed, 0).generator(Purpose::Zoom);
                let objective = alone(&posterior);
                let effort = Effort::Full;
                let found = maximize_joint_ucb(objective, &space, &region, KAPPA, effort, &mut rng)
                    .unwrap();
                for (x, (low, high)) in found.point.0.iter().zip(&region) {
                    assert!((low..=high).contains(&x), "{x} from {low} to {high}");
                }
                assert!(found.value > want - 0.02, "seed {seed}: {} against {want}", found.value);
            }
        }
    }

    /// Three real variables, an integer and a category, which all interact.
    fn with_all_pairs(n: usize) -> (Space, AdditivePosterior) {
        let space = Space::new(vec![
            Parameter::real("x", 0.0, 1.0),
            Parameter::real("y", 0.0, 1.0),
            Parameter::integer("i", 0, 6),
            Parameter::categorical("c", ["a", "b", "c"]),
        ])
        .unwrap();
        let alone = (0..4).map(Component::single).collect();
        let mut rng = Stream::new(3, 0).generator(Purpose::Problem);
        let mut data = Dataset::empty(4);
        for _ in 0..n {
            let point = space.sample(&mut rng);
            let x = &point.0;
            data.push(&point, (6.0 * x[0]).sin() * x[1] + x[2] * x[3] - x[1]).unwrap();
        }
        let mut prior = AdditivePrior {
            all_pairs: Some(AllPairs { weights: vec![0.6, 0.5, 0.4, 0.3] }),
            constant: 0.5,
            common_std: 0.5,
            ..posterior(&space, alone, 1).prior().clone()
        };
        // A set of one is as good as any to see whether its part is climbed.
        prior.kernel.same_choices = vec![SameChoices { variables: vec![3], choices: 3 }];
        (space, prior.condition(&data).unwrap())
    }

    #[test]
    fn climbing_by_coordinates_ends_where_no_single_change_helps() {
        let (space, posterior) = with_all_pairs(25);
        let mut rng = Stream::new(8, 0).generator(Purpose::Zoom);
        for _ in 0..5 {
            let start = space.sample(&mut rng);
            let grid =
                fine_grid(&space, &[], &everywhere(&space), std::slice::from_ref(&start), &mut rng)
                    .unwrap();
            let mean = |point: &Point| posterior.joint(point).unwrap().mean;
            let mut point = start.clone();
            let mut best = mean(&point);
            // The obvious way: every value of every coordinate, one joint mean each.
            for _ in 0..SWEEPS {
                for d in 0..4 {
                    for &x in grid.axis(d) {
                        let mut other = point.clone();
                        other.0[d] = x;
                        if mean(&other) > best + 1e-9 {
                            (best, point) = (mean(&other), other);
                        }
                    }
                }
            }
            let factors = posterior.axis_factors(&grid);
            let found = climb_coordinates(&posterior, &grid, &factors, start).unwrap();
            assert_eq!(found.point, point);
            assert!(found.evaluations > 0);
        }
    }

    #[test]
    fn half_the_effort_finds_no_more_than_all_of_it_and_nearly_as_much() {
        assert_eq!([0, 1, 8].map(Effort::with_pending), [Effort::Full, Effort::Half, Effort::Half]);
        let (space, posterior) = with_all_pairs(25);
        let region = everywhere(&space);
        let mut less = 0;
        for seed in 0..40 {
            let [full, half] = [Effort::Full, Effort::Half].map(|effort| {
                let mut rng = Stream::new(seed, 0).generator(Purpose::Zoom);
                maximize_joint_ucb(alone(&posterior), &space, &region, KAPPA, effort, &mut rng)
                    .unwrap()
            });
            assert!(half.value <= full.value && half.value > full.value - 0.3, "seed {seed}");
            less += usize::from(half.value < full.value);
        }
        // The third start is sometimes the one that leads highest.
        assert!(less > 0 && less < 20, "{less}");
    }

    #[test]
    fn what_is_no_news_is_left_for_more_uncertainty_and_what_is_found_is_the_maximum_of_that() {
        let space = Space::unit_cube(3).unwrap();
        let posterior = posterior(&space, vec![pair(0, 1), pair(1, 2)], 30);
        let region = everywhere(&space);
        let rng = || Stream::new(2, 0).generator(Purpose::Zoom);
        let std = |point: &Point| posterior.joint(point).unwrap().variance.sqrt();
        let maximum = |kappa: f64| {
            maximize_joint_ucb(alone(&posterior), &space, &region, kappa, Effort::Full, &mut rng())
                .unwrap()
        };
        let stds = [KAPPA, 2.0 * KAPPA].map(|kappa| std(&maximum(kappa).point));
        assert!(stds[0] < stds[1], "{stds:?}");
        let find = |least: f64| {
            let is_news = |point: &Point| Ok(std(point) >= least);
            maximize_for_news(
                alone(&posterior),
                &space,
                &region,
                KAPPA,
                is_news,
                Effort::Full,
                &mut rng(),
            )
            .unwrap()
        };
        // Any is news; what only more weight finds; nothing is.
        for (least, doublings) in [(0.0, 0), (0.5 * (stds[0] + stds[1]), 1), (1e9, DOUBLINGS)] {
            let (found, kappa) = find(least);
            assert_eq!(kappa, KAPPA * f64::from(1 << doublings), "σ of {least} in {stds:?}");
            assert_eq!(found, maximum(kappa));
        }
    }

    #[test]
    fn with_all_pairs_the_bound_is_climbed_to_the_best_of_a_dense_grid_inside_the_region() {
        let (space, posterior) = with_all_pairs(25);
        let region = vec![(0.1, 0.6), (0.3, 0.9), (0.0, 0.5), (0.0, 1.0)];
        let real = |low: f64, high: f64| -> Vec<f64> {
            (0..=30).map(|k| low + (high - low) * f64::from(k) / 30.0).collect()
        };
        let finite = |d: usize| -> Vec<f64> {
            let levels = space.levels(d).unwrap();
            let all = (0..levels).map(|level| space.coordinate(d, level));
            all.filter(|x| (region[d].0..=region[d].1).contains(x)).collect()
        };
        let axes = [real(0.1, 0.6), real(0.3, 0.9), finite(2), finite(3)];
        let want = brute_force(&posterior, &axes);
        for seed in 0..5 {
            let mut rng = Stream::new(seed, 0).generator(Purpose::Zoom);
            let found = maximize_joint_ucb(
                alone(&posterior),
                &space,
                &region,
                KAPPA,
                Effort::Full,
                &mut rng,
            )
            .unwrap();
            space.check(&found.point).unwrap();
            for (x, (low, high)) in found.point.0.iter().zip(&region) {
                assert!((low..=high).contains(&x), "{x} from {low} to {high}");
            }
            assert!(found.value > want - 0.05, "seed {seed}: {} against {want}", found.value);
        }
    }
}
