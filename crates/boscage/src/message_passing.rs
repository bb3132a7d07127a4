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
//! variable's domain; `[[a, b]]_R` is the cut of a cell into R cells with one random representative each.
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

/// Largest table, in entries, that one elimination may go through (1 GiB, were it stored). Forests never come near it.
const TABLE_LIMIT: usize = 1 << 27;

/// A finite set of coordinates for every variable: the grid is their product.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    axes: Vec<Vec<f64>>,
}

impl Grid {
    /// A grid with these axes, none of which may be empty or hold a number that is not finite.
    pub fn new(axes: Vec<Vec<f64>>) -> Result<Self> {
        for (i, axis) in axes.iter().enumerate() {
            if axis.is_empty() {
                let reason = format!("axis {i} of the grid is empty; every axis needs a value");
                return Err(Error::InvalidStructure { reason });
            }
            if let Some(&value) = axis.iter().find(|value| !value.is_finite()) {
                let reason = "the values of a grid must be finite".to_string();
                return Err(Error::InvalidPoint { coordinate: i, value, reason });
            }
        }
        Ok(Self { axes })
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
    // Before anything is allocated, and so that a table of the wrong size is an error and not a panic.
    let sizes: Vec<usize> = phi
        .components()
        .iter()
        .map(|g| {
            let entries = g.variables().iter().try_fold(1_u128, |entries, &i| {
                grid.axes.get(i).map(|axis| entries.saturating_mul(axis.len() as u128))
            });
            match entries {
                Some(entries) if entries <= TABLE_LIMIT as u128 => Ok(entries as usize),
                Some(entries) => Err(Error::TableTooLarge { entries, limit: TABLE_LIMIT }),
                None => Err(Error::InvalidStructure {
                    reason: format!("component {g} names a variable beyond the grid"),
                }),
            }
        })
        .collect::<Result<_>>()?;
    let tables = phi.tabulate(grid)?;
    if tables.iter().map(Vec::len).ne(sizes.iter().copied()) {
        return Err(Error::InvalidStructure {
            reason: "the tables of an additive function do not fit its components".to_string(),
        });
    }
    let evaluations = sizes.iter().sum();
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

/// The variables of the table that each elimination goes through: the eliminated one and its neighbours at that time.
pub(crate) fn elimination_scopes(graph: &Graph) -> Vec<Vec<usize>> {
    let order = graph.elimination_order().order;
    let mut position = vec![0; order.len()];
    for (p, &v) in order.iter().enumerate() {
        position[v] = p;
    }
    let later = |v: usize| -> Vec<usize> {
        graph.neighbors(v).iter().copied().filter(|&u| position[u] > position[v]).collect()
    };
    let mut scopes: Vec<Vec<usize>> = (0..order.len()).map(later).collect();
    for &v in &order {
        // The message of v joins all of its later neighbours; it waits with the first of them.
        if let Some(&next) = scopes[v].iter().min_by_key(|&&u| position[u]) {
            let message: Vec<usize> = scopes[v].iter().copied().filter(|&u| u != next).collect();
            scopes[next].extend(message);
            scopes[next].sort_unstable();
            scopes[next].dedup();
        }
        scopes[v].push(v);
    }
    scopes
}

/// The entries of the largest of these tables, if variable i has `size(i)` values.
pub(crate) fn largest_table(scopes: &[Vec<usize>], size: impl Fn(usize) -> u64) -> u128 {
    let entries = |scope: &Vec<usize>| {
        scope.iter().fold(1_u128, |entries, &i| entries.saturating_mul(u128::from(size(i))))
    };
    scopes.iter().map(entries).max().unwrap_or(1)
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
    let first_eliminated =
        |variables: &[usize]| variables.iter().copied().min_by_key(|&v| position[v]);
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
    let sums = variables.iter().fold(sizes[v] as u128, |n, &u| n.saturating_mul(sizes[u] as u128));
    if sums > TABLE_LIMIT as u128 {
        return Err(Error::TableTooLarge { entries: sums, limit: TABLE_LIMIT });
    }
    let entries: usize = variables.iter().map(|&u| sizes[u]).product();
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

    /// `[[a, b]]_R`: cuts the cell into at most R cells of equal size and draws a representative of each.
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
                let bound =
                    |k: u64| first + (u128::from(k) * u128::from(count) / u128::from(cells)) as u64;
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
/// many as keep the number of evaluations of φ^G within `max_evaluations` and every table that message passing goes through
/// within `max_table` entries, if there is such a limit (at least two levels, if a parameter has two).
pub fn msg_passing_capped(
    phi: &impl AdditiveFunction,
    space: &Space,
    max_evaluations: usize,
    max_table: Option<u64>,
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
            let table = g
                .variables()
                .iter()
                .fold(1_u128, |n, &i| n.saturating_mul(u128::from(levels[i].min(r))));
            sum.saturating_add(table)
        })
    };
    let scopes = elimination_scopes(&Graph::from_components(space.dimension(), phi.components())?);
    let table_limit = u128::from(max_table.unwrap_or(u64::MAX)).min(TABLE_LIMIT as u128);
    let fits = |r: u64| {
        evaluations(r) <= max_evaluations as u128
            && largest_table(&scopes, |i| levels[i].min(r)) <= table_limit
    };
    // A variable in no component costs nothing, so that the cap would not keep its axis short.
    let involved = phi.components().iter().flat_map(Component::variables);
    let most = involved.map(|&i| levels[i]).max().unwrap_or(1);
    // Both grow with r: bisection for the largest r within the caps.
    let (mut low, mut high) = (2.min(most), most);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if fits(middle) {
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use proptest::prelude::*;

    use super::*;
    use crate::graph::enumeration::{all_pairs, chosen_pairs, enumerate_forests};
    use crate::graph::{Edge, Forest};
    use crate::space::Parameter;
    use crate::stream::{Purpose, Stream};

    fn generator(seed: u64) -> Generator {
        Stream::new(seed, 0).generator(Purpose::Zoom)
    }

    fn components(lists: &[&[usize]]) -> Vec<Component> {
        let component = |list: &&[usize]| Component::new(list.to_vec()).unwrap();
        lists.iter().map(component).collect()
    }

    fn path(dimension: usize) -> Vec<Component> {
        let edge = |i| Component::pair(Edge::new(i - 1, i).unwrap());
        (1..dimension).map(edge).collect()
    }

    /// A function given by its tables, whatever the coordinates are.
    struct Tables {
        components: Vec<Component>,
        tables: Vec<Vec<f64>>,
    }

    impl AdditiveFunction for Tables {
        fn components(&self) -> &[Component] {
            &self.components
        }

        fn tabulate(&self, _: &Grid) -> Result<Vec<Vec<f64>>> {
            Ok(self.tables.clone())
        }
    }

    impl Tables {
        fn random(
            components: Vec<Component>,
            sizes: &[usize],
            mut entry: impl FnMut() -> f64,
        ) -> Self {
            let length = |g: &Component| g.variables().iter().map(|&i| sizes[i]).product();
            let table = |g: &Component| (0..length(g)).map(|_| entry()).collect();
            let tables = components.iter().map(table).collect();
            Self { components, tables }
        }

        /// The sum at an assignment.
        fn at(&self, assignment: &[usize], sizes: &[usize]) -> f64 {
            let entry = |(g, table): (&Component, &Vec<f64>)| {
                // Last variable fastest.
                let (mut place, mut step) = (0, 1);
                for &i in g.variables().iter().rev() {
                    place += step * assignment[i];
                    step *= sizes[i];
                }
                table[place]
            };
            self.components.iter().zip(&self.tables).map(entry).sum()
        }

        fn evaluations(&self) -> usize {
            self.tables.iter().map(Vec::len).sum()
        }
    }

    /// All assignments of variables with these many values.
    fn assignments(sizes: &[usize]) -> Vec<Vec<usize>> {
        sizes.iter().fold(vec![Vec::new()], |all, &size| {
            let extended = |a: &Vec<usize>| {
                let a = a.clone();
                (0..size).map(move |r| [&a[..], &[r]].concat())
            };
            all.iter().flat_map(extended).collect()
        })
    }

    /// Coordinates that tell variable and place apart, in no order.
    fn coordinate(variable: usize, place: usize) -> f64 {
        (10 * variable) as f64 + [0.3, 0.1, 0.4, 0.2][place % 4] + (place / 4) as f64
    }

    fn grid(sizes: &[usize]) -> Grid {
        let axis = |(i, &size): (usize, &usize)| (0..size).map(|r| coordinate(i, r)).collect();
        Grid::new(sizes.iter().enumerate().map(axis).collect()).unwrap()
    }

    fn assignment(point: &Point, grid: &Grid) -> Vec<usize> {
        let place = |(i, x): (usize, &f64)| grid.axis(i).iter().position(|y| y == x).unwrap();
        point.as_slice().iter().enumerate().map(place).collect()
    }

    /// Checks message passing against trying everything.
    fn check_discrete(phi: &Tables, sizes: &[usize]) {
        let grid = grid(sizes);
        let found = msg_passing_discrete(phi, &grid).unwrap();
        let all = assignments(sizes);
        let values = all.iter().map(|a| phi.at(a, sizes));
        // `max` passes over NaN.
        let best = values.fold(f64::NEG_INFINITY, f64::max);
        let attained = phi.at(&assignment(&found.point, &grid), sizes);
        let name = format!("{:?} with sizes {sizes:?}", phi.components);
        if best == f64::NEG_INFINITY {
            assert_eq!(found.value, best, "{name}");
        } else {
            assert!((found.value - best).abs() < 1e-12, "{name}");
            assert!((attained - best).abs() < 1e-12, "{name}");
        }
        assert_eq!(found.evaluations, phi.evaluations(), "{name}");
    }

    fn sizes(dimension: usize, rng: &mut Generator) -> Vec<usize> {
        (0..dimension).map(|_| rng.random_range(1..=4)).collect()
    }

    /// A few overlapping components of up to 3 variables, possibly the same one twice; some variables are in none.
    fn random_components(dimension: usize, rng: &mut Generator) -> Vec<Component> {
        let count = rng.random_range(0..=dimension + 2);
        (0..count)
            .map(|_| {
                let size = rng.random_range(1..=dimension.min(3));
                let variables = index::sample(rng, dimension, size).into_vec();
                Component::new(variables).unwrap()
            })
            .collect()
    }

    fn named_structures() -> Vec<(usize, Vec<Component>)> {
        let pairs = |edges: Vec<Edge>| edges.into_iter().map(Component::pair).collect::<Vec<_>>();
        let cycle = |n: usize| (0..n).map(|i| Edge::new(i, (i + 1) % n).unwrap()).collect();
        vec![
            (3, components(&[&[0, 1, 2]])),
            (4, components(&[&[0, 1, 2], &[1, 2, 3]])),
            (6, components(&[&[0, 1, 2], &[2, 3, 4], &[4, 5, 0], &[1, 3, 5]])),
            (4, components(&[&[0], &[0, 1], &[1], &[1, 0], &[3], &[0, 1, 3]])),
            (6, components(&[&[4, 1]])),
            (5, Vec::new()),
            (4, pairs(cycle(4))),
            (6, pairs(cycle(6))),
            (5, pairs(all_pairs(5))),
            (6, pairs(all_pairs(6))),
        ]
    }

    #[test]
    fn tables_that_do_not_fit_are_refused() {
        struct Wrong(Vec<Component>, Vec<Vec<f64>>);
        impl AdditiveFunction for Wrong {
            fn components(&self) -> &[Component] {
                &self.0
            }

            fn tabulate(&self, _: &Grid) -> Result<Vec<Vec<f64>>> {
                Ok(self.1.clone())
            }
        }
        let pair = || vec![Component::new(vec![0, 1]).unwrap()];
        let grid = Grid::new(vec![vec![0.0, 1.0]; 2]).unwrap();
        for tables in [vec![], vec![vec![0.0; 3]], vec![vec![0.0; 4]; 2]] {
            let refused = msg_passing_discrete(&Wrong(pair(), tables), &grid).unwrap_err();
            assert!(matches!(refused, Error::InvalidStructure { .. }), "{refused}");
        }
        let beyond = vec![Component::single(2)];
        assert!(msg_passing_discrete(&Wrong(beyond, vec![vec![0.0; 2]]), &grid).is_err());
        // Refused before it is tabulated.
        let huge = Grid::new(vec![vec![0.5; 1 << 15]; 2]).unwrap();
        let refused = msg_passing_discrete(&Wrong(pair(), vec![]), &huge).unwrap_err();
        assert_eq!(refused, Error::TableTooLarge { entries: 1 << 30, limit: TABLE_LIMIT });
    }

    #[test]
    fn grids_without_values_or_with_infinite_ones_are_refused() {
        let refused = Grid::new(vec![vec![0.0], vec![]]).unwrap_err();
        assert!(refused.to_string().contains("axis 1"), "{refused}");
        for value in [f64::NAN, f64::INFINITY] {
            let refused = Grid::new(vec![vec![0.0], vec![0.5, value]]).unwrap_err();
            assert!(matches!(refused, Error::InvalidPoint { coordinate: 1, .. }));
        }
    }

    #[test]
    fn discrete_equals_brute_force_on_forests() {
        let mut rng = generator(1);
        let mut forests: Vec<Forest> = (1..=5).flat_map(enumerate_forests).collect();
        for _ in 0..100 {
            let mut forest = Forest::empty(6);
            for pair in chosen_pairs(6, rng.random()) {
                if !forest.closes_cycle(pair) {
                    forest.add(pair).unwrap();
                }
            }
            forests.push(forest);
        }
        assert!(forests.len() > 400);
        for forest in forests {
            let sizes = sizes(forest.dimension(), &mut rng);
            let entry = || rng.random_range(-1.0..1.0);
            check_discrete(&Tables::random(forest.components(), &sizes, entry), &sizes);
        }
    }

    #[test]
    fn discrete_equals_brute_force_on_general_graphs() {
        let mut rng = generator(2);
        let mut structures = named_structures();
        for _ in 0..300 {
            let dimension = rng.random_range(1..=6);
            structures.push((dimension, random_components(dimension, &mut rng)));
        }
        for (dimension, components) in structures {
            let sizes = sizes(dimension, &mut rng);
            let entry = || rng.random_range(-1.0..1.0);
            check_discrete(&Tables::random(components, &sizes, entry), &sizes);
        }
    }

    #[test]
    fn discrete_equals_brute_force_on_the_cliques_of_random_graphs() {
        let mut rng = generator(12);
        let mut of_size = [0; 5];
        let mut cycles = 0;
        while of_size[1..].iter().sum::<usize>() < 300 {
            let dimension = rng.random_range(4..=7);
            let density = rng.random_range(0.2..0.9);
            let mut pairs = all_pairs(dimension);
            pairs.retain(|_| rng.random::<f64>() < density);
            let graph = Graph::from_edges(dimension, pairs).unwrap();
            let cliques = graph.maximal_cliques();
            let largest = cliques.iter().map(Component::len).max().unwrap();
            if largest > 4 {
                continue;
            }
            of_size[largest] += 1;
            cycles += usize::from(graph.elimination_order().induced_width + 1 > largest);
            let sizes: Vec<usize> = (0..dimension).map(|_| rng.random_range(1..=4)).collect();
            check_discrete(
                &Tables::random(cliques, &sizes, || rng.random_range(-1.0..1.0)),
                &sizes,
            );
        }
        assert!(of_size[3] > 50 && of_size[4] > 50, "{of_size:?}");
        assert!(cycles > 20, "only {cycles} had to be triangulated");
    }

    /// The maximum over a forest by recursion from its roots, the number of values of φ^G, and the sums that were compared: the
    /// paper's algorithm, written down apart.
    fn tree_maximum(forest: &Forest, phi: &Tables, sizes: &[usize]) -> (f64, usize, usize) {
        struct Walk<'a>(&'a Forest, &'a Tables, &'a [usize], usize, usize);
        impl Walk<'_> {
            /// The best sum below i for each of its values, the edge to its parent included in none.
            fn below(&mut self, i: usize, parent: Option<usize>) -> Vec<f64> {
                let mut best = vec![0.0; self.2[i]];
                let children: Vec<usize> =
                    self.0.neighbors(i).iter().copied().filter(|&j| Some(j) != parent).collect();
                for j in children {
                    let of_child = self.below(j, Some(i));
                    let pair = Component::pair(Edge::new(i, j).unwrap());
                    let place = self.1.components.iter().position(|g| *g == pair).unwrap();
                    let table = &self.1.tables[place];
                    self.3 += table.len();
                    for (r, best) in best.iter_mut().enumerate() {
                        let entry = |s: usize| {
                            table[if i < j { r * self.2[j] + s } else { s * self.2[i] + r }]
                        };
                        self.4 += self.2[j];
                        let sums = of_child.iter().enumerate().map(|(s, b)| b + entry(s));
                        *best += sums.fold(f64::NEG_INFINITY, f64::max);
                    }
                }
                best
            }
        }
        let mut walk = Walk(forest, phi, sizes, 0, 0);
        let mut total = 0.0;
        let parts = forest.parts();
        for root in (0..forest.dimension()).filter(|&i| parts[i] == i) {
            let mut best = walk.below(root, None);
            if let Some(place) = phi.components.iter().position(|g| *g == Component::single(root)) {
                walk.3 += phi.tables[place].len();
                best.iter_mut().zip(&phi.tables[place]).for_each(|(best, value)| *best += value);
            }
            walk.4 += best.len();
            total += best.into_iter().fold(f64::NEG_INFINITY, f64::max);
        }
        (total, walk.3, walk.4)
    }

    #[test]
    fn on_forests_bucket_elimination_is_the_tree_algorithm_at_the_same_cost() {
        let mut rng = generator(13);
        for _ in 0..300 {
            let dimension = rng.random_range(1..=30);
            let mut forest = Forest::empty(dimension);
            for _ in 0..rng.random_range(0..3 * dimension) {
                let (i, j) = (rng.random_range(0..dimension), rng.random_range(0..dimension));
                if i != j {
                    // An edge that is there or would close a cycle is refused.
                    let _ = forest.add(Edge::new(i, j).unwrap());
                }
            }
            // The cliques of the graph are the components of the forest.
            let cliques = forest.as_graph().maximal_cliques();
            assert_eq!(cliques, forest.components());
            let sizes = sizes(dimension, &mut rng);
            let phi = Tables::random(cliques, &sizes, || rng.random_range(-1.0..1.0));
            let (value, evaluations, sums) = tree_maximum(&forest, &phi, &sizes);
            let found = msg_passing_discrete(&phi, &grid(&sizes)).unwrap();
            assert!((found.value - value).abs() < 1e-12);
            assert_eq!(found.evaluations, evaluations);
            // Each elimination of a leaf goes through the table of its edge, each last one of a part through its values. Which
            // variable is the last is up to the order, so that those are left out.
            let scopes = elimination_scopes(forest.as_graph());
            let entries = |scope: &Vec<usize>| scope.iter().map(|&i| sizes[i]).product::<usize>();
            let by_edges: usize = scopes.iter().filter(|s| s.len() == 2).map(entries).sum();
            let parts = forest.parts();
            let roots = (0..dimension).filter(|&i| parts[i] == i).map(|i| sizes[i]);
            assert_eq!(by_edges, sums - roots.sum::<usize>());
            assert!(scopes.iter().all(|scope| scope.len() <= 2));
        }
    }

    #[test]
    fn elimination_scopes_are_those_of_joining_all_neighbours() {
        let mut rng = generator(14);
        for _ in 0..300 {
            let dimension = rng.random_range(1..=12);
            let mut pairs = all_pairs(dimension);
            let density = rng.random::<f64>();
            pairs.retain(|_| rng.random::<f64>() < density);
            let graph = Graph::from_edges(dimension, pairs).unwrap();
            let scopes = elimination_scopes(&graph);
            let mut left = graph.clone();
            let order = graph.elimination_order();
            for &v in &order.order {
                let neighbors = left.neighbors(v).to_vec();
                let mut scope = scopes[v].clone();
                scope.retain(|&u| u != v);
                assert_eq!(scope, neighbors);
                for (k, &i) in neighbors.iter().enumerate() {
                    left.remove(Edge::new(i, v).unwrap()).unwrap();
                    for &j in &neighbors[k + 1..] {
                        let edge = Edge::new(i, j).unwrap();
                        if !left.contains(edge) {
                            left.add(edge).unwrap();
                        }
                    }
                }
            }
            let most = largest_table(&scopes, |_| 3);
            assert_eq!(most, 3_u128.pow(order.induced_width as u32 + 1));
        }
        assert_eq!(largest_table(&elimination_scopes(&Graph::empty(0)), |_| 3), 1);
        // Too large for any integer: no overflow.
        let pairs = all_pairs(100);
        let complete = Graph::from_edges(100, pairs).unwrap();
        assert_eq!(largest_table(&elimination_scopes(&complete), |_| 4), u128::MAX);
    }

    #[test]
    fn discrete_passes_over_what_is_not_finite() {
        let mut rng = generator(3);
        let mut structures = named_structures();
        for _ in 0..300 {
            let dimension = rng.random_range(1..=6);
            structures.push((dimension, random_components(dimension, &mut rng)));
        }
        let mut telling = 0;
        for (dimension, components) in structures {
            let sizes = sizes(dimension, &mut rng);
            let entry = || match rng.random_range(0..8) {
                0 => f64::NAN,
                1 => f64::NEG_INFINITY,
                _ => rng.random_range(-1.0..1.0),
            };
            let phi = Tables::random(components, &sizes, entry);
            check_discrete(&phi, &sizes);
            let values = assignments(&sizes).into_iter().map(|a| phi.at(&a, &sizes));
            let (mut finite, mut nan) = (false, false);
            for value in values {
                finite |= value.is_finite();
                nan |= value.is_nan();
            }
            telling += usize::from(finite && nan);
        }
        assert!(telling > 100, "only {telling} have both NaN and a maximum");
        for bad in [f64::NAN, f64::NEG_INFINITY] {
            let phi = Tables::random(components(&[&[0, 1], &[1, 2]]), &[3, 2, 4], || bad);
            check_discrete(&phi, &[3, 2, 4]);
        }
    }

    #[test]
    fn of_equal_maxima_the_first_along_each_axis_is_taken() {
        let mut rng = generator(4);
        let mut ties = 0;
        for _ in 0..300 {
            let dimension = rng.random_range(1..=6);
            let components = random_components(dimension, &mut rng);
            let sizes = sizes(dimension, &mut rng);
            // Small integers: many ties, and sums without rounding.
            let entry = || f64::from(rng.random_range(0..3_u8));
            let phi = Tables::random(components, &sizes, entry);
            let grid = grid(&sizes);
            let found = msg_passing_discrete(&phi, &grid).unwrap();
            let chosen = assignment(&found.point, &grid);
            for i in 0..dimension {
                for r in 0..sizes[i] {
                    let mut other = chosen.clone();
                    other[i] = r;
                    let value = phi.at(&other, &sizes);
                    assert!(value < found.value || (value == found.value && r >= chosen[i]));
                    ties += usize::from(value == found.value && r > chosen[i]);
                }
            }
        }
        assert!(ties > 100, "only {ties} ties");
        let flat = Tables::random(path(5), &[4; 5], || -3.0);
        let found = msg_passing_discrete(&flat, &grid(&[4; 5])).unwrap();
        assert_eq!(assignment(&found.point, &grid(&[4; 5])), [0; 5]);
        assert_eq!(found.value, -12.0);
    }

    #[test]
    fn discrete_in_one_dimension() {
        let phi =
            Tables { components: components(&[&[0]]), tables: vec![vec![1.0, 5.0, 2.0, 5.0]] };
        let found = msg_passing_discrete(&phi, &grid(&[4])).unwrap();
        let expected = Maximum { point: Point(vec![coordinate(0, 1)]), value: 5.0, evaluations: 4 };
        assert_eq!(found, expected);
    }

    #[test]
    fn discrete_on_a_long_path_equals_dynamic_programming() {
        const D: usize = 1000;
        let mut rng = generator(5);
        let sizes = sizes(D, &mut rng);
        let phi = Tables::random(path(D), &sizes, || rng.random_range(-1.0..1.0));
        // best[r]: the best sum of all edges so far that ends in r.
        let mut best = vec![0.0; sizes[0]];
        for (i, table) in phi.tables.iter().enumerate() {
            let to = sizes[i + 1];
            best = (0..to)
                .map(|s| {
                    let from = best.iter().enumerate().map(|(r, b)| b + table[r * to + s]);
                    from.fold(f64::NEG_INFINITY, f64::max)
                })
                .collect();
        }
        let best = best.into_iter().fold(f64::NEG_INFINITY, f64::max);
        let grid = grid(&sizes);
        let found = msg_passing_discrete(&phi, &grid).unwrap();
        // 999 sums of numbers up to 1000, in different orders.
        assert!((found.value - best).abs() < 1e-9);
        assert!((phi.at(&assignment(&found.point, &grid), &sizes) - best).abs() < 1e-9);
        assert_eq!(found.evaluations, phi.evaluations());
    }

    #[test]
    fn tables_that_are_too_large_are_refused_by_their_size() {
        // Each pair has a small table, but the first elimination joins all five variables.
        let pairs = all_pairs(5).into_iter().map(Component::pair).collect();
        let phi = Tables::random(pairs, &[100; 5], || 0.0);
        let axes = vec![vec![0.5; 100]; 5];
        let refused = msg_passing_discrete(&phi, &Grid::new(axes).unwrap()).unwrap_err();
        let expected = Error::TableTooLarge { entries: 10_u128.pow(10), limit: TABLE_LIMIT };
        assert_eq!(refused, expected);
    }

    #[test]
    fn grids_need_values_on_every_axis() {
        let refused = Grid::new(vec![vec![0.0], vec![], vec![1.0]]).unwrap_err();
        assert!(refused.to_string().contains("axis 1"), "{refused}");
        let two = grid(&[2, 3]);
        assert_eq!(two.dimension(), 2);
        assert!(two.check(2).is_ok());
        let expected = Error::WrongDimension { what: "the grid", expected: 3, found: 2 };
        assert_eq!(two.check(3), Err(expected));
    }

    #[test]
    fn an_error_of_the_function_is_passed_on() {
        struct Broken(Vec<Component>);
        impl AdditiveFunction for Broken {
            fn components(&self) -> &[Component] {
                &self.0
            }
            fn tabulate(&self, _: &Grid) -> Result<Vec<Vec<f64>>> {
                Err(Error::EmptySpace)
            }
        }
        let phi = Broken(path(2));
        let cube = Space::unit_cube(2).unwrap();
        let finite = Space::new(vec![Parameter::boolean("a"), Parameter::boolean("b")]).unwrap();
        let rng = &mut generator(1);
        assert_eq!(msg_passing_discrete(&phi, &grid(&[2, 2])), Err(Error::EmptySpace));
        assert_eq!(
            msg_passing_continuous(&phi, &cube, Zoom::default(), rng),
            Err(Error::EmptySpace)
        );
        assert_eq!(msg_passing_capped(&phi, &finite, 10, None, rng), Err(Error::EmptySpace));
    }

    /// A function of the coordinates that remembers the grids on which it was tabulated.
    struct Formula<F> {
        components: Vec<Component>,
        value: F,
        grids: RefCell<Vec<Grid>>,
    }

    impl<F: Fn(&[usize], &[f64]) -> f64> Formula<F> {
        /// `value` is given the variables of a component and their coordinates.
        fn new(components: Vec<Component>, value: F) -> Self {
            Self { components, value, grids: RefCell::default() }
        }

        fn at(&self, point: &[f64]) -> f64 {
            let part = |g: &Component| {
                let x: Vec<f64> = g.variables().iter().map(|&i| point[i]).collect();
                (self.value)(g.variables(), &x)
            };
            self.components.iter().map(part).sum()
        }
    }

    impl<F: Fn(&[usize], &[f64]) -> f64> AdditiveFunction for Formula<F> {
        fn components(&self) -> &[Component] {
            &self.components
        }

        fn tabulate(&self, grid: &Grid) -> Result<Vec<Vec<f64>>> {
            self.grids.borrow_mut().push(grid.clone());
            let table = |g: &Component| {
                let lengths: Vec<usize> =
                    g.variables().iter().map(|&i| grid.axis(i).len()).collect();
                let value = |a: Vec<usize>| {
                    let places = g.variables().iter().zip(a);
                    let x: Vec<f64> = places.map(|(&i, r)| grid.axis(i)[r]).collect();
                    (self.value)(g.variables(), &x)
                };
                assignments(&lengths).into_iter().map(value).collect()
            };
            Ok(self.components.iter().map(table).collect())
        }
    }

    /// Something rugged: no two places have the same value.
    fn rugged(variables: &[usize], x: &[f64]) -> f64 {
        let terms = variables.iter().zip(x);
        let phase = terms.fold(0.7, |sum, (&i, x)| sum * 1.3 + (i as f64 + 2.0) * (x + 0.1));
        (7.0 * phase).sin() + (13.0 * phase).cos()
    }

    #[test]
    fn zooming_into_a_slope_ends_in_the_last_corner_cell() {
        // Of disjoint cells the highest always has the best representative.
        let space = Space::unit_cube(6).unwrap();
        let phi = Formula::new(path(6), |_, x| x[0] + x[1]);
        for (grid_size, levels) in [(2, 1), (2, 10), (3, 5), (4, 4), (4, 12)] {
            for seed in 0..20 {
                let zoom = Zoom { grid_size, levels };
                let found =
                    msg_passing_continuous(&phi, &space, zoom, &mut generator(seed)).unwrap();
                let width = (grid_size as f64).powi(-(levels as i32));
                for &x in found.point.as_slice() {
                    assert!(x >= 1.0 - width - 1e-15 && x <= 1.0, "{x} with {zoom:?}");
                }
            }
        }
    }

    #[test]
    fn zooming_converges_to_a_smooth_optimum() {
        const RUNS: u64 = 200;
        let optimum = [0.37, 0.81, 0.12, 0.55, 0.66];
        let space = Space::unit_cube(5).unwrap();
        let peak = |v: &[usize], x: &[f64]| {
            let off: Vec<f64> = v.iter().zip(x).map(|(&i, x)| x - optimum[i]).collect();
            -off[0] * off[0] - off[1] * off[1] - 0.5 * off[0] * off[1]
        };
        let tree = components(&[&[0, 1], &[1, 2], &[1, 3], &[3, 4]]);
        let phi = Formula::new(tree, peak);
        let median = |levels: usize| {
            let zoom = Zoom { grid_size: 4, levels };
            let mut regrets: Vec<f64> = (0..RUNS)
                .map(|seed| {
                    let found =
                        msg_passing_continuous(&phi, &space, zoom, &mut generator(seed)).unwrap();
                    // The value is that of the point.
                    assert!((found.value - phi.at(found.point.as_slice())).abs() < 1e-12);
                    -found.value
                })
                .collect();
            regrets.sort_by(f64::total_cmp);
            regrets[RUNS as usize / 2]
        };
        let regrets: Vec<f64> = [1, 2, 3, 4].into_iter().map(median).collect();
        for pair in regrets.windows(2) {
            assert!(pair[1] < 0.4 * pair[0], "{regrets:?}");
        }
        assert!(regrets[3] < 1e-3, "{regrets:?}");
    }

    #[test]
    fn zooming_costs_what_the_paper_says() {
        for dimension in [2, 5, 30] {
            let space = Space::unit_cube(dimension).unwrap();
            let phi = Formula::new(path(dimension), rugged);
            let zoom = Zoom::default();
            let found = msg_passing_continuous(&phi, &space, zoom, &mut generator(1)).unwrap();
            assert_eq!(found.evaluations, (dimension - 1) * 16 * 4);
            assert_eq!(phi.grids.borrow().len(), 4);
        }
    }

    #[test]
    fn zooming_is_fixed_by_the_generator() {
        let space = Space::unit_cube(6).unwrap();
        let phi = Formula::new(path(6), rugged);
        let run = |seed| {
            msg_passing_continuous(&phi, &space, Zoom::default(), &mut generator(seed)).unwrap()
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1).point, run(2).point);
    }

    fn finite_space() -> Space {
        let parameters = vec![
            Parameter::integer("a", -1, 2),
            Parameter::ordinal("b", [0.1, 0.5, 9.0]),
            Parameter::categorical("c", ["x", "y", "z", "w"]),
            Parameter::boolean("d"),
            Parameter::integer("e", 5, 5),
            Parameter::real("f", 0.5, 0.5),
        ];
        Space::new(parameters).unwrap()
    }

    /// The largest value over all points of a finite space.
    fn exhaustive<F: Fn(&[usize], &[f64]) -> f64>(phi: &Formula<F>, space: &Space) -> f64 {
        let counts: Vec<usize> =
            (0..space.dimension()).map(|d| space.levels(d).unwrap() as usize).collect();
        let value = |a: Vec<usize>| {
            let levels = a.into_iter().enumerate();
            let x: Vec<f64> = levels.map(|(d, r)| space.coordinate(d, r as u64)).collect();
            phi.at(&x)
        };
        let values = assignments(&counts).into_iter().map(value);
        values.fold(f64::NEG_INFINITY, f64::max)
    }

    #[test]
    fn a_small_finite_space_is_maximised_exactly_and_once() {
        let space = finite_space();
        let phi = Formula::new(components(&[&[0, 1], &[1, 2], &[2, 3, 4], &[5]]), rugged);
        let found =
            msg_passing_continuous(&phi, &space, Zoom::default(), &mut generator(1)).unwrap();
        assert!((found.value - exhaustive(&phi, &space)).abs() < 1e-12);
        assert_eq!(found.evaluations, 4 * 3 + 3 * 4 + 4 * 2 + 1);
        assert_eq!(phi.grids.borrow().len(), 1);
        space.check(&found.point).unwrap();
    }

    #[test]
    fn zooming_that_makes_no_sense_is_refused() {
        let space = Space::unit_cube(2).unwrap();
        let phi = Formula::new(path(2), rugged);
        for (grid_size, levels, culprit) in
            [(0, 4, "grid_size"), (1, 4, "grid_size"), (4, 0, "levels")]
        {
            let zoom = Zoom { grid_size, levels };
            let refused = zoom.validate().unwrap_err();
            assert!(refused.to_string().contains(culprit), "{refused}");
            let run = msg_passing_continuous(&phi, &space, zoom, &mut generator(1));
            assert_eq!(run, Err(refused));
        }
        assert!(phi.grids.borrow().is_empty());
    }

    fn parameters() -> impl Strategy<Value = Parameter> {
        prop_oneof![
            3 => Just(Parameter::real("", -2.0, 5.0)),
            1 => Just(Parameter::real("", 3.0, 3.0)),
            1 => Just(Parameter::real_log("", 1e-6, 1e3)),
            3 => (-50..50_i64, 0..200_i64)
                .prop_map(|(low, steps)| Parameter::integer("", low, low + steps)),
            1 => (1..50_i64, 0..500_i64)
                .prop_map(|(low, steps)| Parameter::integer_log("", low, low + steps)),
            1 => (0..1_000_000_000_000_000_i64).prop_map(|high| Parameter::integer("", 0, high)),
            1 => (1..9_usize).prop_map(|n| {
                Parameter::ordinal("", (0..n).map(|k| (k * k) as f64).collect::<Vec<_>>())
            }),
            1 => Just(Parameter::boolean("")),
            1 => (1..12_usize)
                .prop_map(|n| Parameter::categorical("", (0..n).map(|k| k.to_string()))),
        ]
    }

    fn spaces() -> impl Strategy<Value = Space> {
        prop::collection::vec(parameters(), 1..7).prop_map(|mut parameters| {
            for (d, parameter) in parameters.iter_mut().enumerate() {
                parameter.name = d.to_string();
            }
            Space::new(parameters).unwrap()
        })
    }

    /// The r-th of the cells of a cell, worked out apart from [`Cell::cut`].
    fn cell_of(cell: Cell, r: usize, grid_size: usize) -> Cell {
        match cell {
            Cell::Interval { low, high } => {
                let share = |k: usize| low + (high - low) * k as f64 / grid_size as f64;
                Cell::Interval { low: share(r), high: share(r + 1) }
            }
            Cell::Levels { first, count } => {
                let cells = count.min(grid_size as u64);
                // Level k belongs to the last cell that begins at or before it; cell r begins at ⌊r·count/cells⌋.
                let begin =
                    |r: usize| first + (r as u128 * u128::from(count) / u128::from(cells)) as u64;
                Cell::Levels { first: begin(r), count: begin(r + 1) - begin(r) }
            }
        }
    }

    /// Whether a coordinate lies in a cell, up to the rounding of interval bounds.
    fn lies_in(x: f64, cell: Cell, space: &Space, d: usize) -> bool {
        match cell {
            Cell::Interval { low, high } => x >= low - 1e-15 && x <= high + 1e-15,
            Cell::Levels { first, count } => (first..first + count).contains(&space.level(d, x)),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Replays the search from the grids it looked at: each representative lies in its cell, the chosen cells are
        /// nested, and the point that is returned lies in all of them.
        #[test]
        fn the_point_lies_in_every_chosen_cell(
            space in spaces(),
            grid_size in 2..6_usize,
            levels in 1..6_usize,
            seed in any::<u64>(),
        ) {
            let dimension = space.dimension();
            let phi = Formula::new(
                random_components(dimension, &mut generator(seed)),
                rugged,
            );
            let zoom = Zoom { grid_size, levels };
            let found = msg_passing_continuous(&phi, &space, zoom, &mut generator(seed)).unwrap();
            space.check(&found.point).unwrap();
            let grids = phi.grids.take();

            let mut cells: Vec<Cell> = (0..dimension).map(|d| Cell::whole(&space, d)).collect();
            let mut chosen_cells = Vec::new();
            let mut evaluations = 0;
            let mut last = None;
            for (level, grid) in grids.iter().enumerate() {
                let settled = cells.iter().all(|c| matches!(c, Cell::Levels { count: 1, .. }));
                prop_assert!(level == 0 || !settled, "another level with nothing to choose");
                for (d, &cell) in cells.iter().enumerate() {
                    let expected = match cell {
                        Cell::Interval { .. } => grid_size,
                        Cell::Levels { count, .. } => count.min(grid_size as u64) as usize,
                    };
                    prop_assert_eq!(grid.axis(d).len(), expected);
                    for (r, &x) in grid.axis(d).iter().enumerate() {
                        prop_assert!(lies_in(x, cell_of(cell, r, grid_size), &space, d));
                    }
                }
                for g in &phi.components {
                    evaluations += g.variables().iter().map(|&i| grid.axis(i).len()).product::<usize>();
                }
                let best = msg_passing_discrete(&phi, grid).unwrap();
                let chosen = assignment(&best.point, grid);
                cells = (0..dimension).map(|d| cell_of(cells[d], chosen[d], grid_size)).collect();
                chosen_cells.push(cells.clone());
                last = Some(best);
            }
            let settled = cells.iter().all(|c| matches!(c, Cell::Levels { count: 1, .. }));
            prop_assert!(grids.len() == levels || settled, "ended too soon");
            for cells in chosen_cells {
                for (d, &cell) in cells.iter().enumerate() {
                    prop_assert!(lies_in(found.point.as_slice()[d], cell, &space, d));
                }
            }
            let last = last.unwrap();
            prop_assert_eq!(found.point, last.point);
            prop_assert_eq!(found.value, last.value);
            prop_assert_eq!(found.evaluations, evaluations);
        }

        #[test]
        fn cells_partition_what_is_cut(
            space in spaces(),
            grid_size in 2..9_usize,
            shares in (0.0..1.0_f64, 0.0..1.0_f64),
            seed in any::<u64>(),
        ) {
            let mut rng = generator(seed);
            let (below, above) = (shares.0.min(shares.1), shares.0.max(shares.1));
            for d in 0..space.dimension() {
                let part = match Cell::whole(&space, d) {
                    Cell::Interval { .. } => Cell::Interval { low: below, high: above },
                    Cell::Levels { count, .. } => {
                        let first = ((below * count as f64) as u64).min(count - 1);
                        let end = ((above * count as f64) as u64).clamp(first + 1, count);
                        Cell::Levels { first, count: end - first }
                    }
                };
                for cell in [Cell::whole(&space, d), part] {
                    let cut = cell.cut(&space, d, grid_size, &mut rng);
                    for &(cell, x) in &cut {
                        match cell {
                            Cell::Interval { low, high } => prop_assert!(low <= x && x <= high),
                            Cell::Levels { .. } => {
                                prop_assert!(lies_in(x, cell, &space, d));
                                prop_assert_eq!(x, space.coordinate(d, space.level(d, x)));
                            }
                        }
                    }
                    match cell {
                        Cell::Interval { low, high } => {
                            prop_assert_eq!(cut.len(), grid_size);
                            // Each begins exactly where the one before ends, and all are as wide.
                            let mut end = low;
                            for (cell, _) in cut {
                                let Cell::Interval { low: next, high: last } = cell else {
                                    panic!("levels in an interval");
                                };
                                prop_assert_eq!(next, end);
                                let width = (high - low) / grid_size as f64;
                                prop_assert!((last - next - width).abs() < 1e-15);
                                end = last;
                            }
                            prop_assert_eq!(end, high);
                        }
                        Cell::Levels { first, count } => {
                            prop_assert_eq!(cut.len() as u64, count.min(grid_size as u64));
                            let least = count / cut.len() as u64;
                            let mut end = first;
                            for (cell, _) in cut {
                                let Cell::Levels { first, count } = cell else {
                                    panic!("an interval in levels");
                                };
                                prop_assert_eq!(first, end);
                                prop_assert!(count >= 1);
                                prop_assert!(count == least || count == least + 1);
                                end = first + count;
                            }
                            prop_assert_eq!(end, first + count);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn representatives_of_an_interval_are_uniform() {
        const CUTS: usize = 20_000;
        let space = Space::unit_cube(1).unwrap();
        let cell = Cell::Interval { low: 0.3, high: 0.7 };
        let mut rng = generator(6);
        let mut shares = vec![Vec::new(); 4];
        for _ in 0..CUTS {
            for (r, (cell, x)) in cell.cut(&space, 0, 4, &mut rng).into_iter().enumerate() {
                let Cell::Interval { low, high } = cell else {
                    panic!("levels in an interval");
                };
                shares[r].push((x - low) / (high - low));
            }
        }
        for shares in &mut shares {
            let mean = shares.iter().sum::<f64>() / CUTS as f64;
            // A uniform number has variance 1/12.
            let error = (1.0 / 12.0 / CUTS as f64).sqrt();
            assert!((mean - 0.5).abs() < 5.0 * error, "mean {mean}");
            // Kolmogorov–Smirnov: √n D above 2.5 has probability 2e^(−12.5) = 7e-6.
            shares.sort_by(f64::total_cmp);
            let gap = |(k, u): (usize, &f64)| {
                let (before, after) = (k as f64 / CUTS as f64, (k + 1) as f64 / CUTS as f64);
                (u - before).abs().max((after - u).abs())
            };
            let distance = shares.iter().enumerate().map(gap).fold(0.0, f64::max);
            assert!(distance * (CUTS as f64).sqrt() < 2.5, "distance {distance}");
        }
        // Cells draw apart from each other: the correlation of neighbours has standard error 1/√n. The order within a
        // cell is lost to sorting, so that this needs new draws.
        let mut products = 0.0;
        for _ in 0..CUTS {
            let cut = cell.cut(&space, 0, 4, &mut rng);
            let share = |r: usize| (cut[r].1 - 0.3 - 0.1 * r as f64) / 0.1 - 0.5;
            products += 12.0 * share(1) * share(2);
        }
        assert!((products / CUTS as f64).abs() < 5.0 / (CUTS as f64).sqrt());
    }

    #[test]
    fn representatives_of_levels_are_uniform() {
        const CUTS: usize = 20_000;
        let space = Space::new(vec![Parameter::integer("n", 1, 12)]).unwrap();
        let cell = Cell::Levels { first: 1, count: 10 };
        let mut rng = generator(7);
        let mut counts = [0_usize; 12];
        for _ in 0..CUTS {
            for (_, x) in cell.cut(&space, 0, 4, &mut rng) {
                counts[space.level(0, x) as usize] += 1;
            }
        }
        // Ten levels in four cells of 2, 3, 2, 3 levels; the first and last level are outside.
        assert_eq!((counts[0], counts[11]), (0, 0));
        for (level, size) in [2, 2, 3, 3, 3, 2, 2, 3, 3, 3].into_iter().enumerate() {
            let share = 1.0 / f64::from(size);
            let error = (share * (1.0 - share) / CUTS as f64).sqrt();
            let found = counts[level + 1] as f64 / CUTS as f64;
            assert!((found - share).abs() < 5.0 * error, "{level}: {found}");
        }
    }

    #[test]
    fn huge_numbers_of_levels_are_cut() {
        const COUNT: u64 = 1_000_000_000_000_000;
        let space = Space::new(vec![Parameter::integer("n", 0, COUNT as i64 - 1)]).unwrap();
        let whole = Cell::whole(&space, 0);
        assert_eq!(whole, Cell::Levels { first: 0, count: COUNT });
        let mut rng = generator(8);
        let cut = whole.cut(&space, 0, 7, &mut rng);
        let mut end = 0;
        for (cell, x) in cut {
            let Cell::Levels { first, count } = cell else {
                panic!("an interval in levels");
            };
            assert_eq!(first, end);
            assert!((first..first + count).contains(&space.level(0, x)));
            end += count;
        }
        assert_eq!(end, COUNT);
        // 50 halvings leave one of 10^15 < 2^50 levels.
        let phi = Formula::new(components(&[&[0]]), |_, x| x[0]);
        let zoom = Zoom { grid_size: 2, levels: 60 };
        let found = msg_passing_continuous(&phi, &space, zoom, &mut rng).unwrap();
        assert_eq!(space.level(0, found.point.as_slice()[0]), COUNT - 1);
        assert!(phi.grids.borrow().len() <= 50);
    }

    fn integers(dimension: usize, levels: i64) -> Space {
        let parameter = |d| Parameter::integer(format!("n{d}"), 0, levels - 1);
        Space::new((0..dimension).map(parameter).collect()).unwrap()
    }

    #[test]
    fn capped_search_of_the_papers_star() {
        // 24 edges: 6² a table are 864 evaluations, 7² were 1176.
        let space = integers(25, 51);
        let star: Vec<Component> =
            (1..25).map(|i| Component::pair(Edge::new(0, i).unwrap())).collect();
        for structure in [star, path(25)] {
            let phi = Formula::new(structure, rugged);
            let found = msg_passing_capped(&phi, &space, 1000, None, &mut generator(1)).unwrap();
            assert_eq!(found.evaluations, 864);
            space.check(&found.point).unwrap();
            let grids = phi.grids.borrow();
            assert_eq!(grids.len(), 1);
            for d in 0..25 {
                let axis = grids[0].axis(d);
                assert_eq!(axis.len(), 6);
                assert!(axis.is_sorted_by(|a, b| a < b), "{axis:?}");
            }
            assert!((found.value - phi.at(found.point.as_slice())).abs() < 1e-12);
        }
    }

    #[test]
    fn capped_search_of_a_small_space_is_exact() {
        let space = finite_space();
        let phi = Formula::new(components(&[&[0, 1], &[1, 2], &[2, 3, 4], &[5]]), rugged);
        // All of it takes 33 evaluations.
        for cap in [33, 1000, usize::MAX] {
            let found = msg_passing_capped(&phi, &space, cap, None, &mut generator(1)).unwrap();
            assert_eq!(found.evaluations, 33);
            assert!((found.value - exhaustive(&phi, &space)).abs() < 1e-12);
        }
        // One less leaves out a level of the largest axes: 3·3 + 3·3 + 3·2 + 1.
        let found = msg_passing_capped(&phi, &space, 32, None, &mut generator(1)).unwrap();
        assert_eq!(found.evaluations, 25);
    }

    #[test]
    fn capped_search_of_large_cliques_takes_two_levels_of_each() {
        let space = integers(20, 51);
        let clique = |first: usize| Component::new((first..first + 8).collect()).unwrap();
        // 2⁸ are within the cap of 1000, 3⁸ are not; four cliques of eight are beyond it even so, and no less is possible.
        for (cliques, evaluations) in
            [(vec![clique(0)], 256), (vec![clique(0), clique(4), clique(8), clique(12)], 1024)]
        {
            let phi = Formula::new(cliques, rugged);
            let found =
                msg_passing_capped(&phi, &space, 1000, Some(1 << 16), &mut generator(1)).unwrap();
            assert_eq!(found.evaluations, evaluations);
            assert!((found.value - phi.at(found.point.as_slice())).abs() < 1e-12);
            space.check(&found.point).unwrap();
        }
    }

    #[test]
    fn capped_search_keeps_eliminations_small_too() {
        // 6 + 6 variables, each of one side joined to each of the other: 36 small tables, but eliminations of 7 variables.
        let sides = (0..6).flat_map(|i| (6..12).map(move |j| Edge::new(i, j).unwrap()));
        let phi = Formula::new(sides.map(Component::pair).collect(), rugged);
        let space = integers(12, 51);
        let values = |cap: usize, max_table: Option<u64>| {
            let found =
                msg_passing_capped(&phi, &space, cap, max_table, &mut generator(1)).unwrap();
            assert!((found.value - phi.at(found.point.as_slice())).abs() < 1e-12);
            found.evaluations
        };
        // 36 · 5² = 900 evaluations, and tables of 5⁷ = 78,125 entries.
        assert_eq!(values(1000, None), 900);
        assert_eq!(values(1000, Some(78_125)), 900);
        assert_eq!(values(1000, Some(78_124)), 36 * 16);
        // At least two, whatever the cap.
        assert_eq!(values(1000, Some(4)), 36 * 4);
        // With a cap on evaluations that is no cap, tables of 14⁷ = 10⁸ entries are the last below 2²⁷; smaller ones do here.
        assert_eq!(values(1_000_000, Some(1 << 20)), 36 * 49);
        let free = Formula::new(path(3), rugged);
        let found = msg_passing_capped(&free, &integers(3, 51), 1_000_000, None, &mut generator(1));
        assert_eq!(found.unwrap().evaluations, 2 * 51 * 51);
    }

    #[test]
    fn capped_search_refuses_intervals() {
        let space = Space::new(vec![Parameter::integer("n", 0, 5), Parameter::real("x", 0.0, 1.0)])
            .unwrap();
        let phi = Formula::new(path(2), rugged);
        let refused = msg_passing_capped(&phi, &space, 1000, None, &mut generator(1)).unwrap_err();
        let message = refused.to_string();
        assert!(message.contains("max_evaluations"), "{message}");
        assert!(message.contains("finite"), "{message}");
        assert!(phi.grids.borrow().is_empty());
    }

    #[test]
    fn capped_search_of_huge_domains() {
        // The number of points of a component does not fit any integer type.
        let space = integers(3, 1_000_000_000_000_000);
        let phi = Formula::new(components(&[&[0, 1, 2]]), rugged);
        let found = msg_passing_capped(&phi, &space, 1000, None, &mut generator(1)).unwrap();
        assert_eq!(found.evaluations, 1000);
        space.check(&found.point).unwrap();
        // A variable in no component costs no evaluations, and must not be tabulated whole for that.
        let phi = Formula::new(components(&[&[1]]), rugged);
        let found = msg_passing_capped(&phi, &space, 1000, None, &mut generator(1)).unwrap();
        assert_eq!(found.evaluations, 1000);
        let phi = Formula::new(Vec::new(), rugged);
        let found = msg_passing_capped(&phi, &space, 1000, None, &mut generator(1)).unwrap();
        assert_eq!((found.evaluations, found.value), (0, 0.0));
        space.check(&found.point).unwrap();
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn capped_search_keeps_the_cap_and_wastes_nothing(
            levels in prop::collection::vec(1..40_i64, 1..8),
            cap in 0..3000_usize,
            seed in any::<u64>(),
        ) {
            let parameter = |(d, &n): (usize, &i64)| Parameter::integer(d.to_string(), 1, n);
            let space = Space::new(levels.iter().enumerate().map(parameter).collect()).unwrap();
            let structure = random_components(levels.len(), &mut generator(seed));
            let phi = Formula::new(structure, rugged);
            let found = msg_passing_capped(&phi, &space, cap, None, &mut generator(seed)).unwrap();
            space.check(&found.point).unwrap();
            let cost = |r: i64| {
                let table = |g: &Component| {
                    g.variables().iter().map(|&i| levels[i].min(r) as usize).product::<usize>()
                };
                phi.components.iter().map(table).sum::<usize>()
            };
            prop_assert!(found.evaluations <= cap.max(cost(2)));
            // The most values for which it fits, tried one after the other.
            let most = (2..=40).rev().find(|&r| cost(r) <= cap).unwrap_or(2);
            prop_assert_eq!(found.evaluations, cost(most));
            let grids = phi.grids.borrow();
            for d in 0..levels.len() {
                let axis = grids[0].axis(d);
                prop_assert!(axis.is_sorted_by(|a, b| a < b), "a level twice");
            }
        }
    }

    #[test]
    fn capped_subsets_are_uniform() {
        const DRAWS: usize = 20_000;
        const LEVELS: usize = 20;
        let space = integers(1, LEVELS as i64);
        let phi = Formula::new(components(&[&[0]]), rugged);
        let mut rng = generator(9);
        let mut single = [0_usize; LEVELS];
        let mut joint = [[0_usize; LEVELS]; LEVELS];
        for _ in 0..DRAWS {
            msg_passing_capped(&phi, &space, 5, None, &mut rng).unwrap();
            let grid = phi.grids.take().remove(0);
            assert_eq!(grid.axis(0).len(), 5);
            let levels: Vec<usize> =
                grid.axis(0).iter().map(|&x| space.level(0, x) as usize).collect();
            for (place, &level) in levels.iter().enumerate() {
                single[level] += 1;
                for &before in &levels[..place] {
                    joint[before][level] += 1;
                }
            }
        }
        let check = |count: usize, share: f64| {
            let error = (share * (1.0 - share) / DRAWS as f64).sqrt();
            let off = (count as f64 / DRAWS as f64 - share) / error;
            assert!(off.abs() < 5.0, "{off} standard errors");
        };
        for level in 0..LEVELS {
            check(single[level], 5.0 / 20.0);
            for row in &joint[..level] {
                check(row[level], 5.0 * 4.0 / (20.0 * 19.0));
            }
        }
    }
}
