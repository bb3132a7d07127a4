//! REMBO: Bayesian optimization in a random embedding of few variables.
//!
//! Source: Wang, Zoghi, Hutter, Matheson and de Freitas, *Bayesian Optimization in High Dimensions via Random Embeddings*,
//! IJCAI 2013. A matrix A of D × d independent standard normal numbers maps the box [−√d, √d]^d to the domain, scaled to
//! [−1, 1]^D with its centre at 0: y ↦ Ay, each coordinate clipped. A GP over d variables chooses y by its upper confidence
//! bound. The interleaved variant takes several matrices in turn, each with a GP and data of its own, because any one of
//! them may miss the maximum.
//!
//! Assumes that the objective depends on few directions, at most d of them, whichever they are.
//!
//! Notation: x is a point of the domain, also in model coordinates; y its origin in the box; A⁺ = (AᵀA)⁻¹Aᵀ; z = A⁺x. κ
//! `kappa`.
//!
//! Cost of an ask: D·d + n²/2 multiply-adds for each of some 500 random starts, and D·d + n² + d·n for each step of the
//! climbs from the best of them. The interleaved variant also looks for the origin of every new observation, some 100 times
//! D·d.
//!
//! Settings: [`RemboSettings`]. The default kernel, RBF by maximum likelihood as in the source, was chosen among RBF and
//! Matérn-5/2, with and without priors, on Hartmann6+14 with 100 evaluations, so that figures on that function flatter it.
//! Finite parameters are rounded to levels. Parameters of three or more choices have no order to embed and are refused.
//!
//! Deviations. Clipping loses y, and a run must be the same after it was resumed from its points alone; so the GP sees z =
//! A⁺x of each observed point, clipped to the box, and the bound at y is taken where the GP will see its image: at A⁺ of it,
//! which is y itself where nothing is clipped. This is the warping of Binois, Ginsbourger and Roustant (LION 2015) without
//! their stretching; unlike the original it does not take points for different whose images are the same. Points that are
//! not in the image, such as an initial design that methods share, enter in the same way. In the interleaved variant an
//! observation belongs to the embeddings in whose image it lies, and to all of them if it lies in none; the embedding of an
//! ask is the trial number modulo their number. Kernel parameters are learned afresh from the first n′ observations, where
//! n′ follows from n by the rule `gp.learning`; so nothing need be kept but the observations, and there is no
//! [`Model`](crate::optimizer::Model), which would be one in terms of parameters. Parameters of a single value are left out
//! of the embedding. In finite spaces all points of the image may be known; then any new point is asked for, the only case
//! of one outside of it.

use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::additive_gp::{AdditivePosterior, Normal};
use crate::additive_gp_ucb::{AdditiveGpUcb, AdditiveGpUcbSettings, KernelStart, Learning};
use crate::cholesky::{Factor, Lower};
use crate::design::Design;
use crate::error::{Error, Result};
use crate::methods::line_bo::refuse_categories;
use crate::methods::plain_gp::PlainGp;
use crate::optimizer::Optimizer;
use crate::quasi_newton::minimize_in_box;
use crate::repeats::{RepeatRule, Seen};
use crate::simd;
use crate::space::{Point, Space};
use crate::stream::{Generator, Purpose, Stream, standard_normal};

/// Random points to start from, observed points to start from, and how many starts are climbed from.
const RANDOM_STARTS: usize = 512;
const OBSERVED: usize = 3;
const CLIMBS: usize = 8;
/// Evaluations of the bound and its gradient for each climb.
const CLIMB_EVALUATIONS: usize = 40;
/// Evaluations in the search for the origin of a point, and how near its image must be.
const ORIGIN_EVALUATIONS: usize = 300;
const IN_IMAGE: f64 = 1e-6;
/// Random points of the image that are tried for a new one.
const RANDOM_TRIES: usize = 1000;

/// Settings of [`Rembo`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RemboSettings {
    /// d: variables of an embedding; none for max(2, ⌊√D⌋).
    pub embedding_dimension: Option<usize>,
    /// Number of embeddings, taken in turn.
    pub embeddings: usize,
    /// Points before the model is used; they are images of points in the box.
    pub initial_points: usize,
    /// How these are chosen.
    pub design: Design,
    /// κ: the weight of the standard deviation in the upper confidence bound.
    pub kappa: f64,
    /// The model. Learning starts from the initial parameters only, whatever `kernel_start` says. Fields that are left out of a
    /// given model are those of [`PlainGp::default`].
    pub gp: PlainGp,
    /// Whether points may be asked for again.
    pub repeats: RepeatRule,
}

impl Default for RemboSettings {
    fn default() -> Self {
        Self {
            embedding_dimension: None,
            embeddings: 1,
            initial_points: 10,
            design: Design::Uniform,
            kappa: 2.0,
            gp: PlainGp::maximum_likelihood(),
            repeats: RepeatRule::Avoid,
        }
    }
}

impl RemboSettings {
    /// Four embeddings in turn.
    pub fn interleaved() -> Self {
        Self { embeddings: 4, ..Self::default() }
    }

    /// Refuses settings that make no sense in a space of this dimension, naming the setting.
    pub fn validate(&self, dimension: usize) -> Result<()> {
        let refuse =
            |setting, value: String, reason| Err(Error::InvalidSetting { setting, value, reason });
        if let Some(d) = self.embedding_dimension.filter(|d| !(1..=dimension).contains(d)) {
            let reason = "it must be at least 1 and at most the number of parameters";
            return refuse("embedding_dimension", d.to_string(), reason);
        }
        if self.embeddings == 0 {
            return refuse("embeddings", "0".to_string(), "there must be at least 1");
        }
        if !(self.kappa >= 0.0 && self.kappa.is_finite()) {
            return refuse("kappa", self.kappa.to_string(), "it must be finite and not negative");
        }
        Ok(())
    }
}

/// The matrix A and what is derived from it.
#[derive(Debug, Clone)]
struct Embedding {
    /// d.
    dimension: usize,
    /// √d: the box is [−reach, reach]^d.
    reach: f64,
    /// The rows of A, one after the other; 0 for parameters of a single value.
    rows: Vec<f64>,
    /// Of AᵀA.
    gram: Factor,
    /// What of the box the GP can see: A⁺x for x in the domain is at most this in each coordinate.
    visible: Vec<f64>,
}

impl Embedding {
    fn new(space: &Space, dimension: usize, rng: &mut Generator) -> Result<Self> {
        let mut rows = Vec::with_capacity(space.dimension() * dimension);
        for d in 0..space.dimension() {
            let moves = space.levels(d) != Some(1);
            let row = (0..dimension).map(|_| standard_normal(rng));
            rows.extend(row.map(|a| if moves { a } else { 0.0 }));
        }
        let mut gram = Lower::zeros(dimension);
        for row in rows.chunks_exact(dimension) {
            for j in 0..dimension {
                simd::add_scaled(gram.column_mut(j), row[j], &row[j..]);
            }
        }
        // If nothing moves at all there is nothing to solve for.
        let diagonal = if (0..dimension).all(|j| gram.column(j)[0] == 0.0) { 1.0 } else { 0.0 };
        let gram = Factor::new(&gram, diagonal)?;
        let reach = (dimension as f64).sqrt();
        let mut embedding = Self { dimension, reach, rows, gram, visible: vec![0.0; dimension] };
        // A⁺ column by column: what parameter d can add.
        for row in embedding.rows.chunks_exact(dimension) {
            let mut column = row.to_vec();
            embedding.solve(&mut column);
            for (visible, share) in embedding.visible.iter_mut().zip(column) {
                *visible += share.abs();
            }
        }
        for visible in &mut embedding.visible {
            *visible = if *visible > 0.0 { visible.min(reach) } else { reach };
        }
        Ok(embedding)
    }

    /// Ay.
    fn times(&self, y: &[f64]) -> Vec<f64> {
        self.rows.chunks_exact(self.dimension).map(|row| simd::dot(row, y)).collect()
    }

    /// Aᵀv.
    fn transposed_times(&self, v: &[f64]) -> Vec<f64> {
        let mut sum = vec![0.0; self.dimension];
        for (row, &v) in self.rows.chunks_exact(self.dimension).zip(v) {
            simd::add_scaled(&mut sum, v, row);
        }
        sum
    }

    /// v ← (AᵀA)⁻¹v.
    fn solve(&self, v: &mut [f64]) {
        self.gram.forward_solve(v);
        self.gram.backward_solve(v);
    }

    /// The point of the box at these shares of its sides.
    fn in_box(&self, shares: &[f64]) -> Vec<f64> {
        shares.iter().map(|u| (2.0 * u - 1.0) * self.reach).collect()
    }

    /// The image of y in model coordinates: (clip(Ay) + 1)/2.
    fn image(&self, y: &[f64]) -> Vec<f64> {
        self.times(y).iter().map(|s| 0.5 * (s.clamp(-1.0, 1.0) + 1.0)).collect()
    }

    /// A⁺x.
    fn reduce(&self, coordinates: &[f64]) -> Vec<f64> {
        let scaled: Vec<f64> = coordinates.iter().map(|x| 2.0 * x - 1.0).collect();
        let mut z = self.transposed_times(&scaled);
        self.solve(&mut z);
        z
    }

    /// Where the GP sees a point: A⁺x clipped to the box, as shares of what is visible of it.
    fn seen_at(&self, coordinates: &[f64]) -> Point {
        let share = |(z, visible): (f64, &f64)| (0.5 * (z / visible + 1.0)).clamp(0.0, 1.0);
        Point(self.reduce(coordinates).into_iter().zip(&self.visible).map(share).collect())
    }

    /// κ-bound of what the GP says about the image of y, and its gradient in y.
    fn bound(
        &self,
        posterior: &AdditivePosterior,
        kappa: f64,
        y: &[f64],
    ) -> Result<(f64, Vec<f64>)> {
        let at = self.seen_at(&self.image(y));
        let joint = posterior.joint_gradient(&at)?;
        let std = joint.normal.variance.sqrt();
        // At an observed point without noise the deviation is 0 and has no gradient.
        let weight = if std > 0.0 { 0.5 * kappa / std } else { 0.0 };
        let gradients = joint.mean_gradient.iter().zip(&joint.variance_gradient);
        let mut gradient: Vec<f64> = gradients
            .zip(at.0.iter().zip(&self.visible))
            .map(|((mean, variance), (u, visible))| match u {
                0.0 | 1.0 => 0.0,
                _ => (mean + weight * variance) / (2.0 * visible),
            })
            .collect();
        self.solve(&mut gradient);
        let mut by_image = self.times(&gradient);
        for (slope, s) in by_image.iter_mut().zip(self.times(y)) {
            if s.abs() > 1.0 {
                *slope = 0.0;
            }
        }
        Ok((joint.normal.mean + kappa * std, self.transposed_times(&by_image)))
    }

    /// A point of the box whose image is nearest to this point, and how near it is in the farthest coordinate.
    ///
    /// Where a coordinate is clipped or rounded Ay may be anything that is clipped or rounded to it: a convex problem.
    fn origin(&self, space: &Space, point: &Point) -> (Vec<f64>, f64) {
        let between = |a: f64, b: f64| a + b - 1.0;
        let allowed: Vec<[f64; 2]> = (0..space.dimension())
            .map(|d| {
                let x = point.0[d];
                let [mut low, mut high] = [2.0 * x - 1.0; 2];
                if let Some(levels) = space.levels(d) {
                    let level = space.level(d, x);
                    low = between(x, space.coordinate(d, level.saturating_sub(1)));
                    high = between(x, space.coordinate(d, (level + 1).min(levels - 1)));
                }
                [
                    if low <= -1.0 || space.levels(d) == Some(1) { f64::NEG_INFINITY } else { low },
                    if high >= 1.0 || space.levels(d) == Some(1) { f64::INFINITY } else { high },
                ]
            })
            .collect();
        let outside = |y: &[f64]| -> Vec<f64> {
            self.times(y)
                .iter()
                .zip(&allowed)
                .map(|(s, [low, high])| s - s.clamp(*low, *high))
                .collect()
        };
        // So large that the search goes on until the image is right to about ten digits.
        const WEIGHT: f64 = 1e12;
        let minimum = minimize_in_box(
            |y| {
                let outside = outside(y);
                let gradient = self.transposed_times(&outside);
                let value = 0.5 * WEIGHT * simd::dot(&outside, &outside);
                (value, gradient.into_iter().map(|g| WEIGHT * g).collect())
            },
            &self.reduce(&point.0),
            &vec![-self.reach; self.dimension],
            &vec![self.reach; self.dimension],
            ORIGIN_EVALUATIONS,
        );
        let farthest = outside(&minimum.point).iter().fold(0.0, |max: f64, o| max.max(o.abs()));
        (minimum.point, farthest)
    }
}

/// An embedding and what was observed in it.
#[derive(Debug, Clone)]
struct Part {
    embedding: Embedding,
    /// Observed points, where the GP sees them, and their outcomes.
    observed: Vec<(Point, Point, f64)>,
    /// The GP over the embedding; its own asks are not used.
    gp: AdditiveGpUcb,
}

/// REMBO, one ask at a time.
#[derive(Debug, Clone)]
pub struct Rembo {
    space: Space,
    settings: RemboSettings,
    /// d.
    dimension: usize,
    told: Vec<(Point, f64)>,
    failed: Vec<Point>,
    seen: Seen,
    /// The embeddings of a run, known by its stream, and how many outcomes they know of. Can be made again from the outcomes.
    parts: Option<(Stream, Vec<Part>, usize)>,
    evaluations: usize,
    fallbacks: usize,
}

impl Rembo {
    /// A new run in this space.
    pub fn new(space: Space, settings: RemboSettings) -> Result<Self> {
        settings.validate(space.dimension())?;
        refuse_categories(
            &space,
            "categories have no order, so that an embedding has no meaning for them; choose a method other than rembo",
        )?;
        let movable = (0..space.dimension()).filter(|&d| space.levels(d) != Some(1)).count();
        let root = (space.dimension() as f64).sqrt() as usize;
        let dimension = settings.embedding_dimension.unwrap_or(root.max(2)).min(movable.max(1));
        let rembo = Self {
            space,
            settings,
            dimension,
            told: Vec::new(),
            failed: Vec::new(),
            seen: Seen::default(),
            parts: None,
            evaluations: 0,
            fallbacks: 0,
        };
        rembo.new_gp()?;
        Ok(rembo)
    }

    /// d: the number of variables of an embedding.
    pub fn embedding_dimension(&self) -> usize {
        self.dimension
    }

    /// How many asks had to fall back on a random point because the model could not be computed from the data.
    pub fn fallbacks(&self) -> usize {
        self.fallbacks
    }

    fn new_gp(&self) -> Result<AdditiveGpUcb> {
        let settings = AdditiveGpUcbSettings {
            kernel_start: KernelStart::Present,
            ..self.settings.gp.settings(0, Design::Uniform, RepeatRule::Allow)
        };
        AdditiveGpUcb::new(Space::unit_cube(self.dimension)?, settings)
    }

    /// The embeddings of the run that the stream belongs to, with everything told.
    fn parts(&mut self, stream: &Stream) -> Result<(Vec<Part>, usize)> {
        let run = stream.sibling(0);
        let (mut parts, known) = match self.parts.take() {
            Some((same, parts, known)) if same == run => (parts, known),
            _ => {
                let part = |k: usize| {
                    let mut rng = stream.sibling(k as u64).generator(Purpose::Embedding);
                    Ok(Part {
                        embedding: Embedding::new(&self.space, self.dimension, &mut rng)?,
                        observed: Vec::new(),
                        gp: self.new_gp()?,
                    })
                };
                ((0..self.settings.embeddings).map(part).collect::<Result<Vec<Part>>>()?, 0)
            }
        };
        for (point, y) in &self.told[known..] {
            for k in self.belongs_to(point, &parts) {
                let at = parts[k].embedding.seen_at(&point.0);
                parts[k].observed.push((point.clone(), at, *y));
            }
        }
        Ok((parts, self.told.len()))
    }

    /// The embeddings in whose image the point lies; all if it lies in none.
    fn belongs_to(&self, point: &Point, parts: &[Part]) -> Vec<usize> {
        let all = || (0..parts.len()).collect::<Vec<usize>>();
        if parts.len() == 1 {
            return all();
        }
        let is_near = |&k: &usize| parts[k].embedding.origin(&self.space, point).1 < IN_IMAGE;
        let near: Vec<usize> = (0..parts.len()).filter(is_near).collect();
        if near.is_empty() { all() } else { near }
    }

    fn may_ask(&self, point: &Point, pending: &[Point]) -> bool {
        self.settings.repeats == RepeatRule::Allow || !self.seen.with(pending).contains(point)
    }

    /// How many of n observations the kernel parameters are learned from: those that there were when learning was last due.
    fn learned_from(&self, n: usize) -> usize {
        let first = (self.settings.initial_points / self.settings.embeddings).max(1);
        if n <= first {
            return n;
        }
        match self.settings.gp.learning {
            Learning::Every(interval) => (((n + 1) / interval * interval).max(1) - 1).max(first),
            Learning::Growth(share) => {
                let mut learned = first;
                loop {
                    let next = ((learned as f64 * (1.0 + share)).ceil() as usize).max(learned + 1);
                    if next > n {
                        return learned;
                    }
                    learned = next;
                }
            }
        }
    }

    /// The point of the initial design, or else a random one: the image of a point in the box, new if it has to be.
    fn image_point(
        &self,
        embedding: &Embedding,
        design: Design,
        pending: &[Point],
        stream: &Stream,
    ) -> Result<Point> {
        let mut rng = stream.generator(Purpose::Initial);
        // Each embedding has every k-th trial, and every point of a sequence.
        let turn = stream.sibling(stream.trial() / self.settings.embeddings as u64);
        let mut shares = design.unit_point(self.dimension, &turn);
        for _ in 0..RANDOM_TRIES {
            let shares = shares
                .take()
                .unwrap_or_else(|| (0..self.dimension).map(|_| rng.random()).collect());
            let point = self.space.snap(&embedding.image(&embedding.in_box(&shares)))?;
            if self.may_ask(&point, pending) {
                return Ok(point);
            }
        }
        self.seen.with(pending).any_new(&self.space, &mut rng)
    }

    /// The GP of a part given all that was observed in it, with parameters learned when that was last due.
    fn posterior<'a>(&self, part: &'a mut Part, stream: &Stream) -> Result<&'a AdditivePosterior> {
        let learned = self.learned_from(part.observed.len());
        if part.gp.learned_from() != learned {
            part.gp = self.new_gp()?;
            for (_, at, y) in &part.observed[..learned] {
                part.gp.tell(at.clone(), *y)?;
            }
            part.gp.learn(stream)?;
        }
        for (_, at, y) in &part.observed[part.gp.data().len()..] {
            part.gp.tell(at.clone(), *y)?;
        }
        part.gp.posterior()
    }

    fn model_based(
        &mut self,
        parts: &mut [Part],
        turn: usize,
        pending: &[Point],
        stream: &Stream,
    ) -> Result<Point> {
        let mut busy = Vec::new();
        for point in self.failed.iter().chain(pending) {
            if self.belongs_to(point, parts).contains(&turn) {
                busy.push(parts[turn].embedding.seen_at(&point.0));
            }
        }
        let part = &mut parts[turn];
        let posterior = self.posterior(part, stream)?.with_pending(&busy)?;
        let (embedding, kappa) = (&part.embedding, self.settings.kappa);

        let mut starts: Vec<Vec<f64>> = Vec::new();
        for best in part.gp.posterior()?.best_observed(OBSERVED) {
            if let Some((point, ..)) = part.observed.iter().find(|(_, at, _)| *at == best) {
                starts.push(embedding.origin(&self.space, point).0);
            }
        }
        let mut rng = stream.generator(Purpose::Zoom);
        for k in 0..RANDOM_STARTS {
            // Far out nearly everything is clipped, so that half of the starts are drawn towards the centre.
            let shrink = if k % 2 == 0 { 1.0 } else { rng.random() };
            let shares: Vec<f64> = (0..self.dimension).map(|_| rng.random()).collect();
            starts.push(embedding.in_box(&shares).iter().map(|y| shrink * y).collect());
        }
        let mut ranked = self.rank(starts, embedding, &posterior)?;
        self.evaluations += ranked.len();
        let side = vec![embedding.reach; self.dimension];
        let opposite = vec![-embedding.reach; self.dimension];
        let mut climbed = Vec::new();
        for (_, start, _) in ranked.iter().take(CLIMBS) {
            let minimum = minimize_in_box(
                |y| match embedding.bound(&posterior, kappa, y) {
                    Ok((value, gradient)) => (-value, gradient.into_iter().map(|g| -g).collect()),
                    Err(_) => (f64::INFINITY, vec![0.0; y.len()]),
                },
                start,
                &opposite,
                &side,
                CLIMB_EVALUATIONS,
            );
            self.evaluations += minimum.evaluations;
            climbed.push(minimum.point);
        }
        ranked.extend(self.rank(climbed, embedding, &posterior)?);
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        if ranked.iter().any(|(value, ..)| !value.is_finite()) {
            // The numbers have overflowed.
            return Err(Error::NotPositiveDefinite { pivot: 0 });
        }
        match ranked.into_iter().find(|(_, _, point)| self.may_ask(point, pending)) {
            Some((_, _, point)) => Ok(point),
            None => self.image_point(&part.embedding, Design::Uniform, pending, stream),
        }
    }

    /// The bound of each y with what would be evaluated, rounding included; best first.
    fn rank(
        &self,
        y: Vec<Vec<f64>>,
        embedding: &Embedding,
        posterior: &AdditivePosterior,
    ) -> Result<Vec<(f64, Vec<f64>, Point)>> {
        let points: Vec<Point> =
            y.iter().map(|y| self.space.snap(&embedding.image(y))).collect::<Result<_>>()?;
        let at: Vec<Point> = points.iter().map(|point| embedding.seen_at(&point.0)).collect();
        let bound = |normal: Normal| normal.mean + self.settings.kappa * normal.variance.sqrt();
        let values = posterior.joint_many(&at)?.into_iter().map(bound);
        let mut ranked: Vec<_> =
            values.zip(y).zip(points).map(|((value, y), point)| (value, y, point)).collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        Ok(ranked)
    }
}

impl Optimizer for Rembo {
    fn ask(&mut self, pending: &[Point], stream: &Stream) -> Result<Point> {
        for point in pending {
            self.space.check(point)?;
        }
        if self.settings.repeats == RepeatRule::Avoid {
            self.seen.with(pending).check_exhausted(&self.space)?;
        }
        let (mut parts, known) = self.parts(stream)?;
        let turn = (stream.trial() % self.settings.embeddings as u64) as usize;
        let n = self.told.len();
        let is_initial = n + pending.len() < self.settings.initial_points;
        let point = if is_initial || parts[turn].observed.is_empty() {
            self.image_point(&parts[turn].embedding, self.settings.design, pending, stream)
        } else {
            // Whatever the data have done to the numbers, an ask has an answer.
            self.model_based(&mut parts, turn, pending, stream).or_else(|_| {
                self.fallbacks += 1;
                self.image_point(&parts[turn].embedding, Design::Uniform, pending, stream)
            })
        };
        self.parts = Some((stream.sibling(0), parts, known));
        point
    }

    fn tell(&mut self, point: Point, outcome: f64) -> Result<()> {
        self.space.check(&point)?;
        if !outcome.is_finite() {
            return Err(Error::InvalidOutcome { value: outcome });
        }
        self.seen.insert(&point);
        self.told.push((point, outcome));
        Ok(())
    }

    fn fail(&mut self, point: Point) -> Result<()> {
        self.space.check(&point)?;
        self.seen.insert(&point);
        self.failed.push(point);
        Ok(())
    }

    fn evaluations(&self) -> usize {
        self.evaluations
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Parameter;

    fn hill(point: &Point) -> f64 {
        point.0.iter().enumerate().map(|(i, x)| -(x - 0.3).powi(2) / (1.0 + i as f64)).sum()
    }

    fn random(seed: u64) -> Generator {
        Stream::new(seed, 0).generator(Purpose::Problem)
    }

    fn embedding(space: &Space, dimension: usize, seed: u64) -> Embedding {
        Embedding::new(space, dimension, &mut Stream::new(seed, 0).generator(Purpose::Embedding))
            .unwrap()
    }

    fn random_space(seed: u64) -> Space {
        let mut rng = random(seed);
        let parameters = (0..rng.random_range(1..16)).map(|i| {
            let name = format!("x{i}");
            match rng.random_range(0..if seed.is_multiple_of(2) { 2 } else { 7 }) {
                0 => Parameter::real(name, -1.0, 2.0),
                1 => Parameter::real_log(name, 1e-3, 1e3),
                2 => Parameter::integer(name, 0, rng.random_range(1..2000)),
                3 => Parameter::integer_log(name, 1, 500),
                4 => Parameter::boolean(name),
                5 => Parameter::integer(name, 4, 4),
                _ => Parameter::ordinal(name, [0.1, 0.5, 2.0, 10.0]),
            }
        });
        Space::new(parameters.collect()).unwrap()
    }

    #[test]
    fn every_point_is_the_image_of_one_in_the_box() {
        let mut checked = 0;
        for seed in 0..20 {
            let space = random_space(seed);
            let settings = RemboSettings {
                initial_points: 5,
                embeddings: [1, 3][(seed / 2 % 2) as usize],
                design: [Design::Uniform, Design::Sobol][(seed % 2) as usize],
                repeats: RepeatRule::Allow,
                ..RemboSettings::default()
            };
            let count = settings.embeddings as u64;
            let mut optimizer = Rembo::new(space.clone(), settings).unwrap();
            for trial in 0..21 {
                let point = optimizer.ask(&[], &Stream::new(seed, trial)).unwrap();
                space.check(&point).unwrap();
                let (_, parts, _) = optimizer.parts.as_ref().unwrap();
                let embedding = &parts[(trial % count) as usize].embedding;
                let (y, _) = embedding.origin(&space, &point);
                assert!(y.iter().all(|y| y.abs() <= embedding.reach));
                // y is a proof, checked by the definition: A y, clipped, then rounded.
                let image: Vec<f64> = (0..space.dimension())
                    .map(|d| {
                        let row = &embedding.rows[d * y.len()..(d + 1) * y.len()];
                        let s: f64 = row.iter().zip(&y).map(|(a, y)| a * y).sum();
                        (s.clamp(-1.0, 1.0) + 1.0) / 2.0
                    })
                    .collect();
                for (d, image) in image.into_iter().enumerate() {
                    let slack = match space.levels(d) {
                        None => 0.0,
                        Some(_) => {
                            // Half the distance to the neighbouring level on that side.
                            let up = if image > point.0[d] { 1 } else { -1 };
                            let level = space.level(d, point.0[d]) as i64 + up;
                            let last = space.levels(d).unwrap() as i64 - 1;
                            let next = space.coordinate(d, level.clamp(0, last) as u64);
                            if last == 0 { 1.0 } else { 0.5 * (next - point.0[d]).abs() }
                        }
                    };
                    let gap = (image - point.0[d]).abs();
                    assert!(
                        gap <= slack + 1e-6,
                        "seed {seed}, trial {trial}, coordinate {d}: {gap}"
                    );
                    checked += 1;
                }
                let outcome = hill(&point);
                optimizer.tell(point, outcome).unwrap();
            }
            assert_eq!(optimizer.fallbacks(), 0);
        }
        assert!(checked > 2000);
    }

    #[test]
    fn origins_are_found_for_images_and_only_for_them() {
        let space = Space::unit_cube(20).unwrap();
        for (d, seed) in [2, 4, 6].into_iter().flat_map(|d| (0..30).map(move |seed| (d, seed))) {
            let embedding = embedding(&space, d, seed);
            let mut rng = random(seed);
            let shares: Vec<f64> = (0..d).map(|_| rng.random()).collect();
            let image = Point(embedding.image(&embedding.in_box(&shares)));
            let (y, farthest) = embedding.origin(&space, &image);
            assert!(farthest < 1e-8, "d = {d}, seed {seed}: {farthest}");
            for (a, b) in embedding.image(&y).iter().zip(&image.0) {
                assert!((a - b).abs() < 1e-8);
            }
            let elsewhere = space.sample(&mut rng);
            assert!(embedding.origin(&space, &elsewhere).1 > 0.01);
        }
    }

    #[test]
    fn the_gp_sees_y_itself_where_nothing_is_clipped() {
        let space = Space::unit_cube(12).unwrap();
        let embedding = embedding(&space, 3, 5);
        let mut rng = random(5);
        for _ in 0..50 {
            let y: Vec<f64> = (0..3).map(|_| 0.4 * (rng.random::<f64>() - 0.5)).collect();
            assert!(embedding.times(&y).iter().all(|s| s.abs() < 1.0));
            for (z, y) in embedding.reduce(&embedding.image(&y)).iter().zip(&y) {
                assert!((z - y).abs() < 1e-12);
            }
        }
        // Least squares: what is left of a point is orthogonal to the columns of A.
        let point = space.sample(&mut rng);
        let fitted = embedding.times(&embedding.reduce(&point.0));
        let left: Vec<f64> = point.0.iter().zip(&fitted).map(|(x, s)| 2.0 * x - 1.0 - s).collect();
        assert!(embedding.transposed_times(&left).iter().all(|dot| dot.abs() < 1e-12));
        // No corner of the domain is seen outside of what is visible.
        for _ in 0..1000 {
            let corner: Vec<f64> =
                (0..12).map(|_| f64::from(u8::from(rng.random::<bool>()))).collect();
            for (z, visible) in embedding.reduce(&corner).iter().zip(&embedding.visible) {
                assert!(z.abs() <= visible + 1e-12);
            }
        }
    }

    #[test]
    fn the_gradient_of_the_bound_is_that_of_finite_differences() {
        let space = Space::unit_cube(9).unwrap();
        let mut compared = 0;
        for seed in 0..10 {
            let mut optimizer = Rembo::new(space.clone(), RemboSettings::default()).unwrap();
            for trial in 0..14 {
                let point = optimizer.ask(&[], &Stream::new(seed, trial)).unwrap();
                let outcome = hill(&point);
                optimizer.tell(point, outcome).unwrap();
            }
            let stream = Stream::new(seed, 14);
            optimizer.ask(&[], &stream).unwrap();
            let (_, mut parts, _) = optimizer.parts.take().unwrap();
            let posterior = optimizer.posterior(&mut parts[0], &stream).unwrap().clone();
            let embedding = &parts[0].embedding;
            let mut rng = random(seed);
            for _ in 0..10 {
                let shares: Vec<f64> = (0..3).map(|_| rng.random()).collect();
                let y = embedding.in_box(&shares);
                let (_, gradient) = embedding.bound(&posterior, 2.0, &y).unwrap();
                let h = 1e-6;
                if embedding.times(&y).iter().any(|s| (s.abs() - 1.0).abs() < 1e-4) {
                    continue; // a kink
                }
                for d in 0..3 {
                    let value = |h: f64| {
                        let mut y = y.clone();
                        y[d] += h;
                        embedding.bound(&posterior, 2.0, &y).unwrap().0
                    };
                    let want = (value(h) - value(-h)) / (2.0 * h);
                    assert!(
                        (gradient[d] - want).abs() < 1e-4 * want.abs().max(1.0),
                        "{} {want}",
                        gradient[d]
                    );
                    compared += 1;
                }
            }
        }
        assert!(compared > 150, "{compared}");
    }

    #[test]
    fn matrices_are_standard_normal_and_belong_to_the_seed_and_their_turn() {
        let space = Space::unit_cube(100).unwrap();
        let mut optimizer = Rembo::new(space, RemboSettings::interleaved()).unwrap();
        assert_eq!(optimizer.embedding_dimension(), 10);
        let mut rows = |seed| {
            let (parts, _) = optimizer.parts(&Stream::new(seed, 33)).unwrap();
            parts.into_iter().map(|part| part.embedding.rows).collect::<Vec<_>>()
        };
        let one = rows(1);
        assert_eq!(rows(1), one);
        let other = rows(2);
        for k in 0..4 {
            assert_ne!(one[k], other[k]);
            assert!((0..k).all(|j| one[k] != one[j]));
        }
        let all: Vec<f64> = one.concat();
        assert_eq!(all.len(), 4000);
        for (k, mean, variance) in [(1, 0.0, 1.0), (2, 1.0, 2.0), (4, 3.0, 96.0)] {
            let found = all.iter().map(|a| a.powi(k)).sum::<f64>() / 4000.0;
            let error: f64 = variance / 4000.0;
            assert!((found - mean).abs() < 4.0 * error.sqrt(), "moment {k}: {found}");
        }
    }

    #[test]
    fn observations_belong_to_their_embedding_and_a_shared_design_to_all() {
        let space = Space::unit_cube(30).unwrap();
        let settings =
            RemboSettings { embedding_dimension: Some(4), ..RemboSettings::interleaved() };
        let mut optimizer = Rembo::new(space.clone(), settings).unwrap();
        for k in 0..6 {
            let point = space.sample(&mut random(100 + k));
            let outcome = hill(&point);
            optimizer.tell(point, outcome).unwrap();
        }
        // Outcomes come out of order, as from workers.
        let mut asked: Vec<(u64, Point)> = Vec::new();
        for trial in 6..26 {
            asked.push((trial, optimizer.ask(&[], &Stream::new(7, trial)).unwrap()));
            if asked.len() == 4 {
                for (_, point) in asked.iter().rev() {
                    optimizer.tell(point.clone(), hill(point)).unwrap();
                }
                let (parts, known) = optimizer.parts(&Stream::new(7, 0)).unwrap();
                for (trial, point) in asked.drain(..) {
                    let holds = |part: &Part| part.observed.iter().any(|(x, ..)| *x == point);
                    assert!(holds(&parts[(trial % 4) as usize]), "trial {trial}");
                    // Others only if the point is in their image too, which takes one that is clipped nearly everywhere.
                    let free = point.0.iter().filter(|x| **x > 0.0 && **x < 1.0).count();
                    assert!(free <= 4 || parts.iter().filter(|part| holds(part)).count() == 1);
                }
                optimizer.parts = Some((Stream::new(7, 0), parts, known));
            }
        }
        let (_, parts, _) = optimizer.parts.as_ref().unwrap();
        for part in parts {
            assert!(part.observed.len() >= 11);
            assert_eq!(
                part.observed[..6].iter().map(|o| &o.0).collect::<Vec<_>>(),
                optimizer.told[..6].iter().map(|o| &o.0).collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn learning_is_a_function_of_the_number_of_observations() {
        let learned = |learning, n| {
            let mut settings = RemboSettings::default();
            settings.gp.learning = learning;
            Rembo::new(Space::unit_cube(3).unwrap(), settings).unwrap().learned_from(n)
        };
        let growth = |n| learned(Learning::Growth(0.1), n);
        assert_eq!(
            [1, 9, 10, 11, 12, 13, 14, 15, 100].map(growth),
            [1, 9, 10, 11, 11, 13, 13, 15, 94]
        );
        let every = |n| learned(Learning::Every(15), n);
        assert_eq!(
            [1, 9, 10, 13, 14, 15, 28, 29, 100].map(every),
            [1, 9, 10, 10, 14, 14, 14, 29, 89]
        );
    }

    #[test]
    fn the_dimension_of_the_embedding() {
        let dimension = |d: usize, set: Option<usize>| {
            let settings = RemboSettings { embedding_dimension: set, ..RemboSettings::default() };
            Rembo::new(Space::unit_cube(d).unwrap(), settings).map(|r| r.embedding_dimension())
        };
        for (d, want) in [(1, 1), (2, 2), (8, 2), (9, 3), (20, 4), (250, 15)] {
            assert_eq!(dimension(d, None), Ok(want));
        }
        assert_eq!(dimension(20, Some(6)), Ok(6));
        for bad in [0, 21] {
            let refused = dimension(20, Some(bad)).unwrap_err();
            assert!(matches!(
                refused,
                Error::InvalidSetting { setting: "embedding_dimension", .. }
            ));
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let cube = Space::unit_cube(3).unwrap();
        type Change = fn(&mut RemboSettings);
        let cases: [(&str, Change); 4] = [
            ("embeddings", |s| s.embeddings = 0),
            ("kappa", |s| s.kappa = f64::NAN),
            ("lengthscale", |s| s.gp.lengthscale = -1.0),
            ("learning", |s| s.gp.learning = Learning::Every(0)),
        ];
        for (name, change) in cases {
            let mut settings = RemboSettings::default();
            change(&mut settings);
            let refused = Rembo::new(cube.clone(), settings).unwrap_err();
            assert!(
                matches!(refused, Error::InvalidSetting { setting, .. } if setting == name),
                "{refused:?}"
            );
        }
        let categories = Space::new(vec![
            Parameter::boolean("b"),
            Parameter::categorical("colour", ["red", "green", "blue"]),
        ])
        .unwrap();
        let refused = Rembo::new(categories, RemboSettings::default()).unwrap_err();
        assert!(matches!(&refused, Error::InvalidDomain { name, .. } if name == "colour"));
        assert!(refused.to_string().contains("rembo"));
    }
}
