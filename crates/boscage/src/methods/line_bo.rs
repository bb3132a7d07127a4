//! LineBO: one-dimensional sub-problems, one after the other, through the best point.
//!
//! Source: Kirschner, Mutný, Hiller, Ischebeck and Krause, *Adaptive and Safe Bayesian Optimization in High Dimensions via
//! One-Dimensional Subspaces*, ICML 2019. Each line goes through the best point known, in a direction that is one
//! coordinate, random, or an estimate of the gradient; on it a GP over all variables and all observations chooses points by
//! their upper confidence bound.
//!
//! Assumes smoothness only. It climbs well where the objective is a hill, in any number of dimensions, and leaves a local
//! maximum only if a line happens to lead out of it.
//!
//! Notation: κ `kappa`. A *cycle* is what is done for one line: `points_per_line` points on it, before them for
//! [`Direction::Ascent`] `gradient_points` around its origin. These are the *stages*: when one begins (that is a matter of
//! the number of outcomes alone, so that a run can be resumed), parameters are learned if that is due, and the origin is
//! set.
//!
//! Cost of an ask: n²/2 multiply-adds for each of `grid` values; a stage begins with a Cholesky factorisation and perhaps a
//! learning; a point around the origin takes D·n²/2 + D²·n/2 + D³/6.
//!
//! Settings: [`LineBoSettings`]. Finite parameters move from level to level: their points lie within half a level of the
//! line. A line through categories has no meaning, so that random and ascent directions refuse parameters of three or more
//! choices; on a coordinate the line is the list of choices.
//!
//! Deviations. The origin is the observed point with the highest posterior mean; the original takes the maximum of the mean
//! on the last line, observed or not. So that these are the same, the last point of each line is where the mean on it is
//! highest; the original evaluates that point in addition. A line has a fixed number of points, where the original stops
//! when the bounds are tight (its code: after 6 to 10 points); the default of 4 was chosen among 3 to 10 on Hartmann6+14
//! with 100 evaluations, so that figures on that function flatter it. Coordinates come in random order, all of them once
//! before any comes again. A random direction points into the domain at coordinates nearer than 5 % to a bound: in many
//! dimensions nearly all lines through a point in a corner would end there. The grid is random, one point in each of equal
//! parts, or it would never show what lies between. The gradient is taken at the best point after the evaluations around the
//! origin, which may be one of them. If `points_per_line` evaluations have failed, the next line is taken; ascent then takes
//! a random one. Where nothing is new on 20 lines, which takes finite parameters, any new point is asked for.

use rand::RngExt;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use crate::additive_gp::AdditivePosterior;
use crate::additive_gp_ucb::AdditiveGpUcb;
use crate::design::Design;
use crate::error::{Error, Result};
use crate::kernel::Metric;
use crate::methods::plain_gp::PlainGp;
use crate::optimizer::{Model, Optimizer};
use crate::repeats::RepeatRule;
use crate::space::{Point, Space};
use crate::stream::{Generator, Purpose, Stream, standard_normal};

/// Lines that are looked at for a new point.
const LINES: u64 = 20;
/// Where random directions point into the domain, as a distance to a bound.
const MARGIN: f64 = 0.05;
/// Where an ascent no longer pushes against a bound.
const AT_BOUND: f64 = 1e-3;

/// Where the lines go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Along one parameter at a time.
    #[default]
    Coordinate,
    /// Anywhere.
    Random,
    /// Along the gradient of the posterior mean, after some evaluations around the origin that teach it.
    Ascent,
}

/// Settings of [`LineBo`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct LineBoSettings {
    /// Where the lines go.
    pub direction: Direction,
    /// Points before the model is used.
    pub initial_points: usize,
    /// How they are chosen.
    pub design: Design,
    /// Points on each line.
    pub points_per_line: usize,
    /// For ascent: points around the origin before each line; none for the number of parameters, as in the original.
    pub gradient_points: Option<usize>,
    /// For ascent: how far from the origin they are, as a share of a parameter's range.
    pub radius: f64,
    /// Points of a line that are compared for each ask.
    pub grid: usize,
    /// κ: the weight of the standard deviation in the upper confidence bound.
    pub kappa: f64,
    /// The model.
    pub gp: PlainGp,
    /// Whether points may be asked for again.
    pub repeats: RepeatRule,
}

impl Default for LineBoSettings {
    fn default() -> Self {
        Self {
            direction: Direction::Coordinate,
            initial_points: 10,
            design: Design::Uniform,
            points_per_line: 4,
            gradient_points: None,
            radius: 0.1,
            grid: 300,
            kappa: 2.0,
            gp: PlainGp::default(),
            repeats: RepeatRule::Avoid,
        }
    }
}

impl LineBoSettings {
    /// The default settings with lines of this direction.
    pub fn new(direction: Direction) -> Self {
        Self { direction, ..Self::default() }
    }

    /// Refuses settings that make no sense, naming the setting.
    pub fn validate(&self) -> Result<()> {
        let refuse =
            |setting, value: String, reason| Err(Error::InvalidSetting { setting, value, reason });
        if self.points_per_line == 0 {
            return refuse("points_per_line", "0".to_string(), "a line needs at least 1 point");
        }
        if self.grid < 2 {
            let reason = "at least 2 points of a line must be compared";
            return refuse("grid", self.grid.to_string(), reason);
        }
        if !(self.radius > 0.0 && self.radius <= 1.0) {
            let reason = "it is a share of the range, above 0 and at most 1";
            return refuse("radius", self.radius.to_string(), reason);
        }
        if !(self.kappa >= 0.0 && self.kappa.is_finite()) {
            return refuse("kappa", self.kappa.to_string(), "it must be finite and not negative");
        }
        Ok(())
    }
}

/// Where in its course a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stage {
    /// Number of the line.
    cycle: u64,
    /// The points are around the origin and not yet on the line.
    probing: bool,
    /// Number of observations with which the stage begins.
    begin: usize,
    /// Number of observations since.
    position: usize,
}

/// What a stage's lines have in common.
#[derive(Debug, Clone, PartialEq)]
struct Origin {
    /// How many observations it is from, and how many the model was learned from.
    known: (usize, usize),
    point: Point,
    /// The gradient of the posterior mean there.
    gradient: Vec<f64>,
}

/// All points origin + t · direction of the domain.
#[derive(Debug, Clone, PartialEq)]
struct Line {
    direction: Vec<f64>,
    /// Smallest and largest t.
    range: [f64; 2],
}

impl Line {
    /// None if the direction is 0 or not finite.
    fn new(origin: &Point, direction: Vec<f64>) -> Option<Self> {
        let norm = direction.iter().map(|v| v * v).sum::<f64>().sqrt();
        if !(norm > 0.0 && norm.is_finite()) {
            return None;
        }
        let direction: Vec<f64> = direction.iter().map(|v| v / norm).collect();
        let mut range = [f64::NEG_INFINITY, f64::INFINITY];
        for (&x, &v) in origin.0.iter().zip(&direction).filter(|(_, v)| **v != 0.0) {
            let (a, b) = (-x / v, (1.0 - x) / v);
            range = [range[0].max(a.min(b)), range[1].min(a.max(b))];
        }
        // The origin itself is in the domain, whatever rounding says.
        Some(Self { direction, range: [range[0].min(0.0), range[1].max(0.0)] })
    }

    /// The nearest point of the space to that at t.
    fn at(&self, origin: &Point, t: f64, space: &Space) -> Result<Point> {
        let coordinates: Vec<f64> =
            origin.0.iter().zip(&self.direction).map(|(x, v)| t.mul_add(*v, *x)).collect();
        space.snap(&coordinates)
    }
}

/// LineBO, one ask at a time.
#[derive(Debug, Clone)]
pub struct LineBo {
    space: Space,
    settings: LineBoSettings,
    /// Parameters of more than one value.
    movable: Vec<usize>,
    /// Observations, model and posterior; its own asks are not used.
    gp: AdditiveGpUcb,
    /// Of the present stage; can be made again from the observations and the model.
    origin: Option<Origin>,
    evaluations: usize,
    fallbacks: usize,
}

impl LineBo {
    /// A new run in this space.
    pub fn new(space: Space, settings: LineBoSettings) -> Result<Self> {
        settings.validate()?;
        let mut model =
            settings.gp.settings(settings.initial_points, settings.design, settings.repeats);
        if settings.direction != Direction::Coordinate {
            refuse_categories(
                &space,
                "a line through categories has no meaning; use line-coordinate",
            )?;
            // Two values have an order, whichever it is.
            model.categorical = Metric::Numeric;
        }
        let movable = (0..space.dimension()).filter(|&d| space.levels(d) != Some(1)).collect();
        let gp = AdditiveGpUcb::new(space.clone(), model)?;
        Ok(Self { space, settings, movable, gp, origin: None, evaluations: 0, fallbacks: 0 })
    }

    /// How many asks had to fall back on a random point because the model could not be computed from the data.
    pub fn fallbacks(&self) -> usize {
        self.fallbacks
    }

    /// The stage that a run with n observations is in.
    fn stage(&self, n: usize) -> Stage {
        let settings = &self.settings;
        let probes = match settings.direction {
            Direction::Ascent => settings.gradient_points.unwrap_or(self.movable.len()),
            _ => 0,
        };
        let first = settings.initial_points.max(1);
        let period = probes + settings.points_per_line;
        let (cycle, offset) = (n.saturating_sub(first) / period, n.saturating_sub(first) % period);
        let probing = offset < probes;
        let position = if probing { offset } else { offset - probes };
        // With pending points in the initial design the first stage may begin early.
        let begin = (first + cycle * period + offset - position).min(n);
        Stage { cycle: cycle as u64, probing, begin, position }
    }

    /// The best point known when the stage began.
    fn origin(&mut self, stage: Stage) -> Result<Origin> {
        let learned = self.gp.learned_from();
        // If parameters were learned in this stage, that was when its first point was asked for.
        let known = (stage.begin.max(learned), learned);
        if let Some(origin) = self.origin.as_ref().filter(|origin| origin.known == known) {
            return Ok(origin.clone());
        }
        let posterior = self.gp.posterior_of_first(known.0)?;
        let point =
            posterior.best_observed(1).pop().ok_or(Error::NotPositiveDefinite { pivot: 0 })?;
        let gradient = posterior.joint_gradient(&point)?.mean_gradient;
        Ok(self.origin.insert(Origin { known, point, gradient }).clone())
    }

    /// Line number `number` of the run, if there is one.
    fn line(&self, origin: &Origin, number: u64, follow: bool, stream: &Stream) -> Option<Line> {
        let mut direction = vec![0.0; self.space.dimension()];
        if self.movable.is_empty() {
            return None;
        }
        if self.settings.direction == Direction::Coordinate {
            let count = self.movable.len() as u64;
            let mut order = self.movable.clone();
            order.shuffle(&mut stream.sibling(number / count).generator(Purpose::Line));
            direction[order[(number % count) as usize]] = 1.0;
            return Line::new(&origin.point, direction);
        }
        if follow && let Some(line) = self.ascent(&origin.point, &origin.gradient) {
            return Some(line);
        }
        let mut rng = stream.sibling(number).generator(Purpose::Line);
        for &d in &self.movable {
            let (x, v) = (origin.point.0[d], standard_normal(&mut rng));
            direction[d] = match x {
                x if x < MARGIN => v.abs(),
                x if x > 1.0 - MARGIN => -v.abs(),
                _ => v,
            };
        }
        Line::new(&origin.point, direction)
    }

    /// The line along a gradient, without what would push against a bound.
    fn ascent(&self, origin: &Point, gradient: &[f64]) -> Option<Line> {
        let mut direction = vec![0.0; gradient.len()];
        for &d in &self.movable {
            let (x, slope) = (origin.0[d], gradient[d]);
            let pushes = (slope < 0.0 && x <= AT_BOUND) || (slope > 0.0 && x >= 1.0 - AT_BOUND);
            direction[d] = if pushes { 0.0 } else { slope };
        }
        Line::new(origin, direction)
    }

    /// The points of a line that are compared.
    fn candidates(&self, origin: &Point, line: &Line, rng: &mut Generator) -> Result<Vec<Point>> {
        // All levels of a finite parameter, if it is only that.
        if let Some(d) = line.direction.iter().position(|&v| v == 1.0)
            && let Some(levels) = self.space.levels(d).filter(|&l| l <= self.settings.grid as u64)
        {
            let with = |level| {
                let mut point = origin.clone();
                point.0[d] = self.space.coordinate(d, level);
                point
            };
            return Ok((0..levels).map(with).collect());
        }
        let [low, high] = line.range;
        let parts = self.settings.grid as f64;
        let mut t: Vec<f64> = (0..self.settings.grid)
            .map(|k| (high - low).mul_add((k as f64 + rng.random::<f64>()) / parts, low))
            .collect();
        t.extend([low, 0.0, high]);
        t.sort_unstable_by(f64::total_cmp);
        let mut points: Vec<Point> =
            t.iter().map(|&t| line.at(origin, t, &self.space)).collect::<Result<_>>()?;
        points.dedup();
        Ok(points)
    }

    /// The best point of a line that may be asked for.
    fn best_on(
        &mut self,
        points: Vec<Point>,
        posterior: &AdditivePosterior,
        kappa: f64,
        pending: &[Point],
    ) -> Result<Option<Point>> {
        self.evaluations += points.len();
        let bound = |(normal, point): (crate::additive_gp::Normal, Point)| {
            (normal.mean + kappa * normal.variance.sqrt(), point)
        };
        let mut ranked: Vec<(f64, Point)> =
            posterior.joint_many(&points)?.into_iter().zip(points).map(bound).collect();
        if ranked.iter().any(|(value, _)| !value.is_finite()) {
            // The numbers have overflowed.
            return Err(Error::NotPositiveDefinite { pivot: 0 });
        }
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        Ok(ranked.into_iter().map(|(_, point)| point).find(|p| self.gp.may_ask(p, pending)))
    }

    fn model_based(&mut self, pending: &[Point], stream: &Stream) -> Result<Point> {
        let stage = self.stage(self.gp.data().len());
        if self.gp.learned_from() < stage.begin && self.gp.learning_is_due_at(stage.begin) {
            self.gp.learn(stream)?;
        }
        let origin = self.origin(stage)?;
        let busy = [self.gp.failed(), pending].concat();
        let posterior = self.gp.posterior()?.with_pending(&busy)?;
        let mut rng = stream.generator(Purpose::Zoom);
        if stage.probing
            && let Some(point) = self.probe(&origin.point, &posterior, pending, &mut rng)?
        {
            return Ok(point);
        }
        let per_line = self.settings.points_per_line;
        let is_last =
            per_line > 1 && !stage.probing && stage.position + pending.len() + 1 == per_line;
        let kappa = if is_last { 0.0 } else { self.settings.kappa };
        let skipped = (self.gp.failed().len() / per_line) as u64;
        for line in 0..LINES {
            let follow = self.settings.direction == Direction::Ascent
                && line == 0
                && skipped.is_multiple_of(2);
            let Some(line) = self.line(&origin, stage.cycle + skipped + line, follow, stream)
            else {
                break;
            };
            let points = self.candidates(&origin.point, &line, &mut rng)?;
            if let Some(point) = self.best_on(points, &posterior, kappa, pending)? {
                return Ok(point);
            }
        }
        self.gp.random_point(pending, stream)
    }

    /// A point around the origin, in the direction of a gradient drawn from the posterior; farther out if there is
    /// nothing new.
    fn probe(
        &mut self,
        origin: &Point,
        posterior: &AdditivePosterior,
        pending: &[Point],
        rng: &mut Generator,
    ) -> Result<Option<Point>> {
        let z: Vec<f64> = (0..self.space.dimension()).map(|_| standard_normal(rng)).collect();
        let gradient = posterior.gradient_sample(origin, &z)?;
        self.evaluations += 1;
        let Some(line) = self.ascent(origin, &gradient) else { return Ok(None) };
        let mut t = self.settings.radius;
        loop {
            let point = line.at(origin, t.min(line.range[1]), &self.space)?;
            if self.gp.may_ask(&point, pending) {
                return Ok(Some(point));
            }
            if t >= line.range[1] {
                return Ok(None);
            }
            t *= 2.0;
        }
    }
}

/// Refuses parameters of three or more values without an order.
pub(crate) fn refuse_categories(space: &Space, reason: &str) -> Result<()> {
    let bad = |d: &usize| space.is_categorical(*d) && space.levels(*d).is_some_and(|l| l > 2);
    match (0..space.dimension()).find(bad) {
        Some(d) => Err(Error::InvalidDomain {
            name: space.parameters()[d].name.clone(),
            reason: reason.to_string(),
        }),
        None => Ok(()),
    }
}

impl Optimizer for LineBo {
    fn ask(&mut self, pending: &[Point], stream: &Stream) -> Result<Point> {
        self.gp.check_ask(pending)?;
        let n = self.gp.data().len();
        if n == 0 || n + pending.len() < self.settings.initial_points {
            return self.gp.initial_point(pending, stream);
        }
        // Whatever the data have done to the numbers, an ask has an answer.
        self.model_based(pending, stream).or_else(|_| {
            self.fallbacks += 1;
            self.gp.random_point(pending, stream)
        })
    }

    fn tell(&mut self, point: Point, outcome: f64) -> Result<()> {
        self.gp.tell(point, outcome)
    }

    fn fail(&mut self, point: Point) -> Result<()> {
        self.gp.fail(point)
    }

    fn model(&self) -> Option<&Model> {
        self.gp.model()
    }

    fn resume(&mut self, model: Model) -> Result<()> {
        self.gp.resume(model)?;
        self.origin = None;
        Ok(())
    }

    fn evaluations(&self) -> usize {
        self.evaluations
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::additive_gp::{AdditivePrior, Dataset};
    use crate::common_effect::CommonEffect;
    use crate::graph::Component;
    use crate::kernel::{Kernel, KernelFamily};
    use crate::space::Parameter;

    const DIRECTIONS: [Direction; 3] =
        [Direction::Coordinate, Direction::Random, Direction::Ascent];

    fn hill(point: &Point) -> f64 {
        let bowl: f64 = point.0.iter().map(|x| -(x - 0.3).powi(2)).sum();
        let pairs: f64 = point.0.windows(2).map(|x| x[0] * x[1]).sum();
        bowl + 0.5 * pairs
    }

    /// Spaces of reals and of everything; the latter with categories only for coordinates.
    fn spaces(direction: Direction, seed: u64) -> Space {
        let mut rng = Stream::new(seed, 0).generator(Purpose::Problem);
        let parameters = (0..rng.random_range(1..8)).map(|i| {
            let name = format!("x{i}");
            match rng.random_range(0..if seed.is_multiple_of(2) { 2 } else { 7 }) {
                0 => Parameter::real(name, -1.0, 2.0),
                1 => Parameter::real_log(name, 1e-3, 1e3),
                2 => Parameter::integer(name, 0, rng.random_range(1..2000)),
                3 => Parameter::integer_log(name, 1, 500),
                4 => Parameter::boolean(name),
                5 => Parameter::integer(name, 4, 4),
                _ if direction == Direction::Coordinate => {
                    Parameter::categorical(name, ["a", "b", "c", "d"])
                }
                _ => Parameter::ordinal(name, [0.1, 0.5, 2.0, 10.0]),
            }
        });
        Space::new(parameters.collect()).unwrap()
    }

    /// Whether some t has origin + t · direction within half a level of the point, in every coordinate.
    fn is_on(space: &Space, point: &Point, origin: &Point, line: &Line) -> bool {
        let (mut low, mut high) = (line.range[0] - 1e-9, line.range[1] + 1e-9);
        for d in 0..space.dimension() {
            let (x, v) = (point.0[d], line.direction[d]);
            let [mut below, mut above] = [x - 1e-9, x + 1e-9];
            if let Some(levels) = space.levels(d) {
                let level = space.level(d, x);
                below = 0.5 * (x + space.coordinate(d, level.saturating_sub(1))) - 1e-9;
                above = 0.5 * (x + space.coordinate(d, (level + 1).min(levels - 1))) + 1e-9;
            }
            let (a, b) = ((below - origin.0[d]) / v, (above - origin.0[d]) / v);
            if v != 0.0 {
                (low, high) = (low.max(a.min(b)), high.min(a.max(b)));
            } else if !(below..=above).contains(&origin.0[d]) {
                return false;
            }
        }
        low <= high
    }

    #[test]
    fn every_point_lies_on_its_line() {
        let mut asked = [0; 2];
        for (seed, direction) in (0..24).flat_map(|seed| DIRECTIONS.map(|d| (seed, d))) {
            let space = spaces(direction, seed);
            let settings = LineBoSettings {
                initial_points: 4,
                repeats: if seed % 3 == 0 { RepeatRule::Allow } else { RepeatRule::Avoid },
                ..LineBoSettings::new(direction)
            };
            let mut optimizer = LineBo::new(space.clone(), settings).unwrap();
            let size = space.size().unwrap_or(u128::MAX);
            let all_real = (0..space.dimension()).all(|d| space.levels(d).is_none());
            for trial in 0..28_u64.min(u64::try_from(size / 2).unwrap_or(u64::MAX)) {
                let stream = Stream::new(seed, trial);
                let point = optimizer.ask(&[], &stream).unwrap();
                space.check(&point).unwrap();
                let n = optimizer.gp.data().len();
                if n >= 4 {
                    let stage = optimizer.stage(n);
                    let origin = optimizer.origin.clone().unwrap();
                    // The next lines are taken if nothing new is on the first, and a draw of the gradient may be anything.
                    let on_line = |number: u64| {
                        let follow = direction == Direction::Ascent && number == 0;
                        let number = stage.cycle + number;
                        let line = optimizer.line(&origin, number, follow, &stream);
                        line.is_none_or(|line| is_on(&space, &point, &origin.point, &line))
                    };
                    if stage.probing {
                        asked[1] += 1;
                        if all_real {
                            let squares =
                                point.0.iter().zip(&origin.point.0).map(|(a, b)| (a - b).powi(2));
                            assert!(squares.sum::<f64>().sqrt() < 0.1 + 1e-12);
                        }
                    } else {
                        asked[0] += 1;
                        let lines = if all_real { 1 } else { LINES };
                        assert!(
                            (0..lines).any(on_line),
                            "{direction:?}, seed {seed}, trial {trial}: {point:?} from {origin:?}"
                        );
                    }
                }
                let outcome = hill(&point);
                optimizer.tell(point, outcome).unwrap();
            }
            assert_eq!(optimizer.fallbacks(), 0);
        }
        assert!(asked[0] > 700 && asked[1] > 100, "{asked:?}");
    }

    #[test]
    fn points_of_a_line_are_collinear_and_the_next_line_starts_from_the_best_of_all() {
        for direction in DIRECTIONS {
            let space = Space::unit_cube(6).unwrap();
            let mut optimizer = LineBo::new(space, LineBoSettings::new(direction)).unwrap();
            let (mut last, mut lines) = (None::<(Stage, Origin)>, 0);
            for trial in 0..70 {
                let point = optimizer.ask(&[], &Stream::new(3, trial)).unwrap();
                if let Some(origin) = optimizer.origin.clone() {
                    let stage = optimizer.stage(optimizer.gp.data().len());
                    if let Some((old, from)) = last.filter(|(old, _)| old.begin != stage.begin) {
                        // The end of a line is at least as good as its beginning, by what is known then.
                        let posterior = optimizer.gp.posterior_of_first(origin.known.0).unwrap();
                        let mean = |point| posterior.joint(point).unwrap().mean;
                        assert!(mean(&origin.point) >= mean(&from.point) - 1e-9);
                        lines += usize::from(!old.probing);
                    }
                    if !stage.probing && stage.position > 1 {
                        // Three points and the origin: all differences are multiples of one of them.
                        let n = optimizer.gp.data().len();
                        let step = |p: &Point| -> Vec<f64> {
                            p.0.iter().zip(&origin.point.0).map(|(a, b)| a - b).collect()
                        };
                        let (a, b) = (step(&point), step(&optimizer.gp.data().point(n - 1)));
                        let dot = |a: &[f64], b: &[f64]| simd_free_dot(a, b);
                        let area = dot(&a, &a) * dot(&b, &b) - dot(&a, &b).powi(2);
                        assert!(area.abs() < 1e-12, "{direction:?}, trial {trial}: {area}");
                    }
                    last = Some((stage, origin));
                }
                let outcome = hill(&point);
                optimizer.tell(point, outcome).unwrap();
            }
            assert!(lines >= 5, "{direction:?}: {lines} lines");
        }
    }

    fn simd_free_dot(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn the_last_point_of_a_line_is_where_the_mean_is_highest() {
        let space = Space::unit_cube(4).unwrap();
        let settings =
            LineBoSettings { repeats: RepeatRule::Allow, ..LineBoSettings::new(Direction::Random) };
        let mut optimizer = LineBo::new(space.clone(), settings).unwrap();
        let mut compared = 0;
        for trial in 0..40 {
            let stream = Stream::new(4, trial);
            let point = optimizer.ask(&[], &stream).unwrap();
            let stage = optimizer.stage(optimizer.gp.data().len());
            if stage.position == 3 {
                let origin = optimizer.origin.clone().unwrap();
                let line = optimizer.line(&origin, stage.cycle, false, &stream).unwrap();
                let posterior = optimizer.gp.posterior().unwrap();
                let mean = |point: &Point| posterior.joint(point).unwrap().mean;
                let [low, high] = line.range;
                for k in 0..=1000 {
                    let t = low + (high - low) * f64::from(k) / 1000.0;
                    let other = line.at(&origin.point, t, &space).unwrap();
                    assert!(mean(&point) > mean(&other) - 1e-3);
                }
                compared += 1;
            }
            let outcome = hill(&point);
            optimizer.tell(point, outcome).unwrap();
        }
        assert!(compared >= 6, "{compared}");
    }

    #[test]
    fn stages_follow_from_the_number_of_observations() {
        let space = Space::unit_cube(3).unwrap();
        let of = |direction, n| {
            let stage =
                LineBo::new(space.clone(), LineBoSettings::new(direction)).unwrap().stage(n);
            (stage.cycle, stage.probing, stage.begin, stage.position)
        };
        let random = |n| of(Direction::Random, n);
        assert_eq!(random(10), (0, false, 10, 0));
        assert_eq!(random(13), (0, false, 10, 3));
        assert_eq!(random(14), (1, false, 14, 0));
        // Pending points can end the initial design early.
        assert_eq!(random(7), (0, false, 7, 0));
        // Three points around the origin, four on the line.
        let ascent = |n| of(Direction::Ascent, n);
        assert_eq!(ascent(10), (0, true, 10, 0));
        assert_eq!(ascent(12), (0, true, 10, 2));
        assert_eq!(ascent(13), (0, false, 13, 0));
        assert_eq!(ascent(16), (0, false, 13, 3));
        assert_eq!(ascent(17), (1, true, 17, 0));
    }

    fn at(point: Vec<f64>, gradient: Vec<f64>) -> Origin {
        Origin { known: (1, 1), point: Point(point), gradient }
    }

    #[test]
    fn lines_end_where_the_domain_ends() {
        let mut rng = Stream::new(9, 0).generator(Purpose::Problem);
        for _ in 0..200 {
            let space = Space::unit_cube(5).unwrap();
            let origin = space.sample(&mut rng);
            let direction: Vec<f64> = (0..5).map(|_| standard_normal(&mut rng)).collect();
            let line = Line::new(&origin, direction).unwrap();
            for t in line.range {
                let ahead = |t: f64| -> Vec<f64> {
                    origin.0.iter().zip(&line.direction).map(|(x, v)| x + t * v).collect()
                };
                assert!(ahead(t).iter().all(|x| (-1e-12..=1.0 + 1e-12).contains(x)));
                let beyond = ahead(t + 1e-6 * t.signum());
                assert!(beyond.iter().any(|x| !(0.0..=1.0).contains(x)));
            }
        }
        assert_eq!(Line::new(&Point(vec![0.5; 2]), vec![0.0, 0.0]), None);
        assert_eq!(Line::new(&Point(vec![0.5; 2]), vec![f64::NAN, 1.0]), None);
    }

    #[test]
    fn coordinates_come_in_sweeps() {
        let space = Space::new(
            (0..7)
                .map(|i| Parameter::integer(format!("x{i}"), 0, if i == 3 { 0 } else { 9 }))
                .collect(),
        )
        .unwrap();
        let optimizer = LineBo::new(space, LineBoSettings::default()).unwrap();
        let origin = at(vec![0.5; 7], vec![0.0; 7]);
        let mut orders = Vec::new();
        for sweep in 0..3 {
            let order: Vec<usize> = (0..6)
                .map(|k| {
                    optimizer.line(&origin, 6 * sweep + k, false, &Stream::new(1, 50 + k)).unwrap()
                })
                .map(|line| line.direction.iter().position(|&v| v == 1.0).unwrap())
                .collect();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 4, 5, 6]);
            orders.push(order);
        }
        assert!(orders[0] != orders[1] || orders[1] != orders[2]);
    }

    #[test]
    fn random_directions_are_uniform_and_point_inside_at_bounds() {
        const N: u64 = 4000;
        let space = Space::unit_cube(3).unwrap();
        let optimizer = LineBo::new(space, LineBoSettings::new(Direction::Random)).unwrap();
        let directions = |origin: Vec<f64>| -> Vec<Vec<f64>> {
            let origin = at(origin, vec![0.0; 3]);
            (0..N)
                .map(|k| optimizer.line(&origin, k, true, &Stream::new(1, 0)))
                .map(|line| line.unwrap().direction)
                .collect()
        };
        let inside = directions(vec![0.5; 3]);
        let mean = |f: &dyn Fn(&[f64]) -> f64| inside.iter().map(|v| f(v)).sum::<f64>() / N as f64;
        // On the unit sphere E v_i = 0, E v_i² = 1/3, E v_i⁴ = 1/5 and E v_i² v_j² = 1/15.
        let error = |variance: f64| 4.0 * (variance / N as f64).sqrt();
        for i in 0..3 {
            assert!(mean(&|v| v[i]).abs() < error(1.0 / 3.0));
            assert!((mean(&|v| v[i] * v[i]) - 1.0 / 3.0).abs() < error(1.0 / 5.0 - 1.0 / 9.0));
            assert!(mean(&|v| v[i] * v[(i + 1) % 3]).abs() < error(1.0 / 15.0));
        }
        // At bounds the directions are the same, turned inside.
        for (a, b) in inside.iter().zip(directions(vec![0.0, 0.5, 0.97])) {
            assert_eq!(b, [a[0].abs(), a[1], -a[2].abs()]);
        }
    }

    #[test]
    fn ascent_follows_the_gradient_but_not_out_of_the_domain() {
        let space = Space::unit_cube(3).unwrap();
        let optimizer = LineBo::new(space, LineBoSettings::new(Direction::Ascent)).unwrap();
        let line = |origin: Vec<f64>, gradient: Vec<f64>| {
            optimizer.line(&at(origin, gradient), 0, true, &Stream::new(1, 0)).unwrap().direction
        };
        assert_eq!(line(vec![0.5; 3], vec![3.0, 0.0, -4.0]), [0.6, 0.0, -0.8]);
        assert_eq!(line(vec![1.0, 0.0, 0.0], vec![3.0, 7.0, -4.0]), [0.0, 1.0, 0.0]);
        // Nothing to follow: a random direction.
        assert!(line(vec![0.5; 3], vec![0.0; 3]).iter().all(|v| *v != 0.0));
    }

    /// Var of ∇f by finite differences of the posterior covariance, which is made by the textbook.
    #[test]
    fn drawn_gradients_have_the_distribution_of_the_gradient() {
        for family in [KernelFamily::Rbf, KernelFamily::Matern52] {
            let (n, dimension) = (7, 3);
            let mut kernel = Kernel::uniform(family, dimension, 0.5, 0.7);
            kernel.lengthscales = vec![0.3, 0.6, 0.9];
            let component = |variables: &[usize]| Component::new(variables.to_vec()).unwrap();
            let prior = AdditivePrior {
                components: vec![component(&[0, 1, 2]), component(&[1])],
                kernel,
                noise_std: 0.2,
                all_pairs: None,
                constant: 0.0,
                common_std: 0.4,
            };
            let mut rng = Stream::new(2, 0).generator(Purpose::Problem);
            let mut data = Dataset::empty(dimension);
            for _ in 0..n {
                let point = Space::unit_cube(dimension).unwrap().sample(&mut rng);
                data.push(&point, hill(&point)).unwrap();
            }
            let posterior = prior.condition(&data).unwrap();
            let covariance = |a: &[f64], b: &[f64]| -> f64 {
                let effect = CommonEffect::new(&prior.kernel, prior.common_std);
                let alike = |x: &[f64]| effect.of_point(x);
                let alike: f64 = alike(a).iter().zip(alike(b)).map(|(a, b)| a * b).sum();
                alike + prior.components.iter().map(|g| prior.kernel.value(g, a, b)).sum::<f64>()
            };
            // cov(a, b) = k(a, b) − k(a, X) Δ⁻¹ k(X, b) by Gaussian elimination.
            let given = |a: &[f64], b: &[f64]| {
                let mut rows: Vec<Vec<f64>> = (0..n)
                    .map(|i| {
                        let x = data.point(i);
                        let noise = |j| if i == j { 0.04 } else { 0.0 };
                        let row = (0..n).map(|j| covariance(&x.0, &data.point(j).0) + noise(j));
                        row.chain([covariance(&x.0, b)]).collect()
                    })
                    .collect();
                rows.push(
                    (0..n)
                        .map(|j| covariance(a, &data.point(j).0))
                        .chain([covariance(a, b)])
                        .collect(),
                );
                for pivot in 0..n {
                    for i in pivot + 1..=n {
                        let share = rows[i][pivot] / rows[pivot][pivot];
                        let above = rows[pivot].clone();
                        rows[i].iter_mut().zip(above).for_each(|(x, above)| *x -= share * above);
                    }
                }
                rows[n][n]
            };
            let x = Point(vec![0.4, 0.55, 0.3]);
            let zero = posterior.gradient_sample(&x, &[0.0; 3]).unwrap();
            let mean = posterior.joint_gradient(&x).unwrap().mean_gradient;
            assert!(
                zero.iter().zip(&mean).all(|(a, b)| (a - b).abs() < 1e-12),
                "{zero:?} {mean:?}"
            );
            let columns: Vec<Vec<f64>> = (0..3)
                .map(|j| {
                    let z: Vec<f64> = (0..3).map(|i| f64::from(u8::from(i == j))).collect();
                    let draw = posterior.gradient_sample(&x, &z).unwrap();
                    draw.iter().zip(&zero).map(|(draw, mean)| draw - mean).collect()
                })
                .collect();
            let h = 1e-3;
            for (i, j) in [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)] {
                let moved = |d: usize, h: f64| {
                    let mut x = x.0.clone();
                    x[d] += h;
                    x
                };
                let four = [(h, h, 1.0), (-h, h, -1.0), (h, -h, -1.0), (-h, -h, 1.0)];
                let want: f64 = four
                    .iter()
                    .map(|(a, b, sign)| sign * given(&moved(i, *a), &moved(j, *b)))
                    .sum();
                let want = want / (4.0 * h * h);
                let got: f64 = columns.iter().map(|column| column[i] * column[j]).sum();
                assert!(
                    (got - want).abs() < 1e-3 * want.abs().max(1.0),
                    "{family:?} {i} {j}: {got} {want}"
                );
            }
        }
    }

    #[test]
    fn many_failures_lead_to_another_line() {
        let space = Space::unit_cube(4).unwrap();
        for direction in DIRECTIONS {
            let mut optimizer = LineBo::new(space.clone(), LineBoSettings::new(direction)).unwrap();
            for trial in 0..20 {
                let point = optimizer.ask(&[], &Stream::new(6, trial)).unwrap();
                let outcome = hill(&point);
                optimizer.tell(point, outcome).unwrap();
            }
            let mut steps: Vec<Vec<f64>> = Vec::new();
            for trial in 20..44 {
                let point = optimizer.ask(&[], &Stream::new(6, trial)).unwrap();
                let origin = &optimizer.origin.as_ref().unwrap().point;
                steps.push(point.0.iter().zip(&origin.0).map(|(a, b)| a - b).collect());
                optimizer.fail(point).unwrap();
            }
            let moved = |d: usize| steps.iter().any(|step| step[d].abs() > 1e-6);
            assert!((0..4).all(moved), "{direction:?}");
        }
    }

    #[test]
    fn settings_that_make_no_sense_are_named() {
        type Change = fn(&mut LineBoSettings);
        let cases: [(&str, Change); 10] = [
            ("points_per_line", |s| s.points_per_line = 0),
            ("grid", |s| s.grid = 1),
            ("radius", |s| s.radius = 0.0),
            ("radius", |s| s.radius = 1.5),
            ("radius", |s| s.radius = f64::NAN),
            ("kappa", |s| s.kappa = -1.0),
            ("kappa", |s| s.kappa = f64::INFINITY),
            ("lengthscale", |s| s.gp.lengthscale = 0.0),
            ("noise_std", |s| s.gp.noise_std = f64::NAN),
            ("scale_bounds", |s| s.gp.kernel_learning.scale_bounds = [2.0, 1.0]),
        ];
        for (name, change) in cases {
            let mut settings = LineBoSettings::default();
            change(&mut settings);
            let refused = LineBo::new(Space::unit_cube(2).unwrap(), settings).unwrap_err();
            assert!(
                matches!(refused, Error::InvalidSetting { setting, .. } if setting == name),
                "{refused:?}"
            );
        }
        LineBo::new(
            Space::unit_cube(1).unwrap(),
            LineBoSettings { gradient_points: Some(0), ..LineBoSettings::new(Direction::Ascent) },
        )
        .unwrap();
    }

    #[test]
    fn categories_are_refused_unless_the_line_is_their_list() {
        let space = Space::new(vec![
            Parameter::boolean("b"),
            Parameter::categorical("two", ["a", "b"]),
            Parameter::categorical("three", ["a", "b", "c"]),
        ])
        .unwrap();
        for direction in DIRECTIONS {
            let built = LineBo::new(space.clone(), LineBoSettings::new(direction));
            match direction {
                Direction::Coordinate => assert!(built.is_ok()),
                _ => {
                    let refused = built.unwrap_err();
                    assert!(
                        matches!(&refused, Error::InvalidDomain { name, .. } if name == "three")
                    );
                    assert!(refused.to_string().contains("line-coordinate"));
                }
            }
        }
    }
}
