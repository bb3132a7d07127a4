//! Exact maximisation of a sum over components on a grid, and zooming into a continuous domain.
//!
//! Paper: Alg. 2 MSG-PASSING-CONTINUOUS ([`msg_passing_continuous`]), MSG-PASSING-DISCRETE of its appendix
//! ([`msg_passing_discrete`]) and ZOOM-STRATEGY ([`zoom_strategy`]).
//!
//! There is one max-sum for all graphs: bucket elimination along an elimination order of the dependency graph. On a
//! forest the order takes leaves first and every message has one variable: the paper's algorithm. On other graphs
//! messages have as many variables as the order's induced width.
//!
//! Notation: 𝒳_d is the axis of variable d (R values, or all levels of a finite parameter); a cell is what remains of a
//! variable's domain; [[a, b]]_R is the cut of a cell into R cells with one random representative each.
//!
//! Cost: on a forest D·R² additions a level and at most (D − 1)·R² evaluations of φ^G, the paper's message-passing cost,
//! which is returned with every maximum.

use rand::RngExt;
use rand::seq::index;
use serde::{Deserialize, Serialize};

use crate::acquisition::AdditiveFunction;
use crate::error::{Error, Result};
use crate::graph::{Component, Graph};
use crate::space::{Point, Space};
use crate::stream::Generator;

/// Largest message, in entries, that elimination may build (1 GiB). Forests never come near it.
const TABLE_LIMIT: usize = 1 << 27;

/// A finite set of coordinates for every variable: the grid is their product.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    axes: Vec<Vec<f64>>,
}

impl Grid {
    /// A grid with these axes, none of which may be empty.
    pub fn new(axes: Vec<Vec<f64>>) -> Result<Self> {
        match axes.iter().position(Vec::is_empty) {
            Some(i) => Err(Error::InvalidStructure {
                reason: format!("axis {i} of the grid is empty; every axis needs a value"),
            }),
            None => Ok(Self { axes }),
        }
    }

    /// The values of variable i.
    pub fn axis(&self, i: usize) -> &[f64] {
        &self.axes[i]
    }

    /// Number of variables.
    pub fn dimension(&self) -> usize {
        self.axes.len()
    }

    pub(crate) fn check(&self, dimension: usize) -> Result<()> {
        if self.axes.len() == dimension {
            Ok(())
        } else {
            let found = self.axes.len();
            Err(Error::WrongDimension { what: "the grid", expected: dimension, found })
        }
    }

    fn sizes(&self) -> Vec<usize> {
        self.axes.iter().map(Vec::len).collect()
    }
}

/// The maximum of an additive function.
#[derive(Debug, Clone, PartialEq)]
pub struct Maximum {
    /// Where it is.
    pub point: Point,
    /// The maximum.
    pub value: f64,
    /// How many values of φ^G were needed: the paper's message-passing cost.
    pub evaluations: usize,
}

/// MSG-PASSING-DISCRETE: the exact maximum of φ on the grid. Of equal maxima it takes the first along each axis.
pub fn msg_passing_discrete(phi: &impl AdditiveFunction, grid: &Grid) -> Result<Maximum> {
    let chosen = choose(phi, grid)?;
    let point = chosen.assignment.iter().enumerate().map(|(i, &r)| grid.axis(i)[r]).collect();
    Ok(Maximum { point: Point(point), value: chosen.value, evaluations: chosen.evaluations })
}

struct Chosen {
    assignment: Vec<usize>,
    value: f64,
    evaluations: usize,
}

fn choose(phi: &impl AdditiveFunction, grid: &Grid) -> Result<Chosen> {
    let tables = phi.tabulate(grid)?;
    let evaluations = tables.iter().map(Vec::len).sum();
    let (assignment, value) = max_sum(phi.components(), tables, &grid.sizes())?;
    Ok(Chosen { assignment, value, evaluations })
}

/// A table over some variables (sorted), last variable fastest.
struct Table {
    variables: Vec<usize>,
    values: Vec<f64>,
}

/// What was decided when a variable was eliminated: its best value for every assignment of `variables`.
struct Decision {
    variable: usize,
    variables: Vec<usize>,
    best: Vec<u32>,
}

/// The assignment that maximises the sum of the tables, and the maximum, by bucket elimination.
fn max_sum(
    components: &[Component],
    tables: Vec<Vec<f64>>,
    sizes: &[usize],
) -> Result<(Vec<usize>, f64)> {
    let dimension = sizes.len();
    let order = Graph::from_components(dimension, components)?.elimination_order().order;
    let mut position = vec![0; dimension];
    for (p, &v) in order.iter().enumerate() {
        position[v] = p;
    }
    // Each table waits in the bucket of the variable of its scope that is eliminated first.
    let mut buckets: Vec<Vec<Table>> = (0..dimension).map(|_| Vec::new()).collect();
    let first_eliminated = |variables: &[usize]| variables.iter().copied().min_by_key(|&v| position[v]);
    for (component, values) in components.iter().zip(tables) {
        let variables = component.variables().to_vec();
        if let Some(v) = first_eliminated(&variables) {
            buckets[v].push(Table { variables, values });
        }
    }
    let mut total = 0.0;
    let mut decisions = Vec::with_capacity(dimension);
    for &v in &order {
        let (message, decision) = eliminate(v, std::mem::take(&mut buckets[v]), sizes)?;
        decisions.push(decision);
        match first_eliminated(&message.variables) {
            Some(next) => buckets[next].push(message),
            None => total += message.values[0],
        }
    }
    let mut assignment = vec![0; dimension];
    for decision in decisions.iter().rev() {
        let mut entry = 0;
        for &u in &decision.variables {
            entry = entry * sizes[u] + assignment[u];
        }
        assignment[decision.variable] = decision.best[entry] as usize;
    }
    Ok((assignment, total))
}

/// Sums the tables of a bucket and maximises over its variable v.
fn eliminate(v: usize, tables: Vec<Table>, sizes: &[usize]) -> Result<(Table, Decision)> {
    let mut variables: Vec<usize> =
        tables.iter().flat_map(|t| t.variables.iter().copied()).filter(|&u| u != v).collect();
    variables.sort_unstable();
    variables.dedup();
    let entries = variables.iter().fold(1_u128, |n, &u| n.saturating_mul(sizes[u] as u128));
    if entries.saturating_mul(sizes[v] as u128) > TABLE_LIMIT as u128 {
        return Err(Error::TableTooLarge { entries, limit: TABLE_LIMIT });
    }
    let entries = entries as usize;
    // strides[t][k]: how far one step of variables[k] moves in table t; steps[t]: one step of v.
    let stride = |table: &Table, u: usize| match table.variables.iter().position(|&w| w == u) {
        Some(p) => table.variables[p + 1..].iter().map(|&w| sizes[w]).product::<usize>(),
        None => 0,
    };
    let strides: Vec<Vec<usize>> =
        tables.iter().map(|t| variables.iter().map(|&u| stride(t, u)).collect()).collect();
    let steps: Vec<usize> = tables.iter().map(|t| stride(t, v)).collect();

    let mut values = Vec::with_capacity(entries);
    let mut best = Vec::with_capacity(entries);
    let mut digits = vec![0; variables.len()];
    let mut offsets = vec![0; tables.len()];
    for _ in 0..entries {
        let (mut winner, mut maximum) = (0, f64::NEG_INFINITY);
        for r in 0..sizes[v] {
            let mut sum = 0.0;
            for ((table, offset), step) in tables.iter().zip(&offsets).zip(&steps) {
                sum += table.values[offset + r * step];
            }
            if sum > maximum {
                (winner, maximum) = (r, sum);
            }
        }
        values.push(maximum);
        best.push(winner as u32);
        // The next assignment, last variable fastest.
        for k in (0..variables.len()).rev() {
            digits[k] += 1;
            let carry = digits[k] == sizes[variables[k]];
            for (offset, strides) in offsets.iter_mut().zip(&strides) {
                if carry {
                    *offset -= (digits[k] - 1) * strides[k];
                } else {
                    *offset += strides[k];
                }
            }
            if !carry {
                break;
            }
            digits[k] = 0;
        }
    }
    let decision = Decision { variable: v, variables: variables.clone(), best };
    Ok((Table { variables, values }, decision))
}

/// How finely a domain is searched: R cells an axis, L times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Zoom {
    /// R: cells an axis is cut into at each level.
    pub grid_size: usize,
    /// L: number of levels.
    pub levels: usize,
}

impl Default for Zoom {
    /// The paper's R = 4, L = 4.
    fn default() -> Self {
        Self { grid_size: 4, levels: 4 }
    }
}

impl Zoom {
    /// Refuses fewer than two cells or no level.
    pub fn validate(&self) -> Result<()> {
        if self.grid_size < 2 {
            return Err(Error::InvalidSetting {
                setting: "zoom.grid_size",
                value: self.grid_size.to_string(),
                reason: "an axis must be cut into at least 2 cells",
            });
        }
        if self.levels < 1 {
            return Err(Error::InvalidSetting {
                setting: "zoom.levels",
                value: self.levels.to_string(),
                reason: "there must be at least 1 level",
            });
        }
        Ok(())
    }
}

/// What remains of a variable's domain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell {
    /// An interval of model coordinates.
    Interval {
        /// a_d.
        low: f64,
        /// b_d.
        high: f64,
    },
    /// Consecutive levels of a finite parameter.
    Levels {
        /// The first level.
        first: u64,
        /// How many.
        count: u64,
    },
}

impl Cell {
    /// The whole domain of variable d.
    pub fn whole(space: &Space, d: usize) -> Self {
        match space.levels(d) {
            None => Cell::Interval { low: 0.0, high: 1.0 },
            Some(count) => Cell::Levels { first: 0, count },
        }
    }

    /// [[a, b]]_R: cuts the cell into at most R cells of equal size and draws a representative of each.
    ///
    /// Levels are not split: a cell of at most R levels is cut into its levels.
    fn cut(
        self,
        space: &Space,
        d: usize,
        grid_size: usize,
        rng: &mut Generator,
    ) -> Vec<(Cell, f64)> {
        match self {
            Cell::Interval { low, high } => {
                let width = (high - low) / grid_size as f64;
                let bound = |k: usize| {
                    if k == grid_size { high } else { width.mul_add(k as f64, low) }
                };
                (0..grid_size)
                    .map(|k| {
                        let (low, high) = (bound(k), bound(k + 1));
                        let x = (high - low).mul_add(rng.random::<f64>(), low).clamp(low, high);
                        (Cell::Interval { low, high }, x)
                    })
                    .collect()
            }
            Cell::Levels { first, count } => {
                let cells = count.min(grid_size as u64);
                let bound = |k: u64| {
                    first + (u128::from(k) * u128::from(count) / u128::from(cells)) as u64
                };
                (0..cells)
                    .map(|k| {
                        let (first, end) = (bound(k), bound(k + 1));
                        let level = rng.random_range(first..end);
                        (Cell::Levels { first, count: end - first }, space.coordinate(d, level))
                    })
                    .collect()
            }
        }
    }
}

/// ZOOM-STRATEGY: for each variable the cell whose representative was chosen.
pub fn zoom_strategy(cut: &[Vec<(Cell, f64)>], chosen: &[usize]) -> Vec<Cell> {
    cut.iter().zip(chosen).map(|(cells, &r)| cells[r].0).collect()
}

/// Alg. 2, MSG-PASSING-CONTINUOUS: L levels of cutting, exact maximisation over the representatives, and zooming.
///
/// Returns the maximum of the last level, as the paper does; its cells always contain the point that is returned, and a
/// finite parameter is always on one of its levels.
pub fn msg_passing_continuous(
    phi: &impl AdditiveFunction,
    space: &Space,
    zoom: Zoom,
    rng: &mut Generator,
) -> Result<Maximum> {
    zoom.validate()?;
    let mut cells: Vec<Cell> = (0..space.dimension()).map(|d| Cell::whole(space, d)).collect();
    let mut evaluations = 0;
    let mut level = 0;
    loop {
        level += 1;
        let cut: Vec<Vec<(Cell, f64)>> = cells
            .iter()
            .enumerate()
            .map(|(d, cell)| cell.cut(space, d, zoom.grid_size, rng))
            .collect();
        let grid = Grid::new(cut.iter().map(|axis| axis.iter().map(|c| c.1).collect()).collect())?;
        let chosen = choose(phi, &grid)?;
        evaluations += chosen.evaluations;
        cells = zoom_strategy(&cut, &chosen.assignment);
        // A last level in which nothing is left to choose would only repeat this one.
        let settled = cells.iter().all(|cell| matches!(cell, Cell::Levels { count: 1, .. }));
        if level == zoom.levels || settled {
            let point = cut.iter().zip(&chosen.assignment).map(|(axis, &r)| axis[r].1).collect();
            return Ok(Maximum { point: Point(point), value: chosen.value, evaluations });
        }
    }
}

/// The paper's search of finite domains: one exact maximisation over a random part of the levels of each variable, as
/// many as keep the number of evaluations of φ^G within the cap (at least two, if a parameter has two).
pub fn msg_passing_capped(
    phi: &impl AdditiveFunction,
    space: &Space,
    max_evaluations: usize,
    rng: &mut Generator,
) -> Result<Maximum> {
    let levels: Vec<u64> = (0..space.dimension())
        .map(|d| {
            space.levels(d).ok_or_else(|| Error::InvalidSetting {
                setting: "max_evaluations",
                value: max_evaluations.to_string(),
                reason: "a cap on evaluations needs a space of finite parameters; use zooming",
            })
        })
        .collect::<Result<_>>()?;
    let evaluations = |r: u64| {
        phi.components().iter().fold(0_u128, |sum, g| {
            sum + g.variables().iter().fold(1_u128, |n, &i| n * u128::from(levels[i].min(r)))
        })
    };
    let most = levels.iter().copied().max().unwrap_or(1);
    // evaluations(r) grows with r: bisection for the largest r within the cap.
    let (mut low, mut high) = (2.min(most), most);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if evaluations(middle) <= max_evaluations as u128 {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    let axes = levels
        .iter()
        .enumerate()
        .map(|(d, &count)| {
            let mut chosen: Vec<u64> = if count <= low {
                (0..count).collect()
            } else {
                index::sample(rng, usize::try_from(count).unwrap_or(usize::MAX), low as usize)
                    .into_iter()
                    .map(|level| level as u64)
                    .collect()
            };
            chosen.sort_unstable();
            chosen.into_iter().map(|level| space.coordinate(d, level)).collect()
        })
        .collect();
    msg_passing_discrete(phi, &Grid::new(axes)?)
}
