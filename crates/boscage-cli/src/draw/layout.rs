//! Where the vertices of a graph are drawn.
//!
//! Each connected part is laid out on its own: a tree by rings around its centre, anything else by majorising the stress
//! between drawn and graph distances (the start is classical scaling). The parts are then packed in rows. All of it is
//! deterministic. Cost: O(n²) for each of 200 stress steps.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::f64::consts::TAU;

/// A place in the unit square.
pub(crate) type Place = [f64; 2];

/// How far a place is from the line between two others.
pub(crate) fn from_segment((x, y): (f64, f64), (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> f64 {
    let (dx, dy) = (x2 - x1, y2 - y1);
    let along = (((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy).max(1e-9)).clamp(0.0, 1.0);
    (x - x1 - along * dx).hypot(y - y1 - along * dy)
}

/// A place in the unit square for every vertex.
pub(crate) fn layout(vertices: usize, edges: &[(usize, usize)]) -> Vec<Place> {
    let mut neighbours = vec![Vec::new(); vertices];
    for &(i, j) in edges {
        if i < vertices && j < vertices && i != j {
            neighbours[i].push(j);
            neighbours[j].push(i);
        }
    }
    for list in &mut neighbours {
        list.sort_unstable();
        list.dedup();
    }
    let mut seen = vec![false; vertices];
    let mut parts: Vec<(Vec<usize>, Vec<Place>)> = Vec::new();
    for vertex in 0..vertices {
        if !seen[vertex] {
            let part: Vec<usize> = distances(&neighbours, vertex).into_keys().collect();
            for &member in &part {
                seen[member] = true;
            }
            let places = part_layout(&neighbours, &part);
            parts.push((part, places));
        }
    }
    // large parts first; equal ones in the order of their vertices
    parts.sort_by_key(|(part, _)| std::cmp::Reverse(part.len()));
    packed(vertices, &parts)
}

/// The graph distance from a vertex to all that can be reached.
fn distances(neighbours: &[Vec<usize>], from: usize) -> BTreeMap<usize, usize> {
    let mut found = BTreeMap::from([(from, 0)]);
    let mut queue = VecDeque::from([(from, 0)]);
    while let Some((vertex, distance)) = queue.pop_front() {
        for &next in &neighbours[vertex] {
            found.entry(next).or_insert_with(|| {
                queue.push_back((next, distance + 1));
                distance + 1
            });
        }
    }
    found
}

/// Places of one connected part, in the order of its vertices. Neighbours are about 1 apart.
fn part_layout(neighbours: &[Vec<usize>], part: &[usize]) -> Vec<Place> {
    let edges = part.iter().map(|&vertex| neighbours[vertex].len()).sum::<usize>() / 2;
    let stress = || turned(stress_layout(neighbours, part));
    match part.len() {
        0 | 1 => vec![[0.0, 0.0]; part.len()],
        2 => vec![[0.0, 0.0], [1.0, 0.0]],
        size if size > 12 && part.iter().all(|&vertex| neighbours[vertex].len() <= 2) => {
            circle_layout(neighbours, part)
        }
        size if edges + 1 == size => {
            // rings waste a deep tree's room: the layout that keeps vertices further apart wins
            let (rings, stress) = (ring_layout(neighbours, part), stress());
            let room = |places: &[Place]| closest(&normalised(places));
            if room(&rings) >= 0.6 * room(&stress) { rings } else { stress }
        }
        _ => stress(),
    }
}

/// A path or a cycle along a circle, from one end to the other.
fn circle_layout(neighbours: &[Vec<usize>], part: &[usize]) -> Vec<Place> {
    let end = part.iter().copied().find(|&vertex| neighbours[vertex].len() == 1);
    let mut order: Vec<usize> = end.or(part.first().copied()).into_iter().collect();
    let mut seen: BTreeSet<usize> = order.iter().copied().collect();
    while let Some(&vertex) = order.last()
        && let Some(&next) = neighbours[vertex].iter().find(|next| !seen.contains(next))
    {
        seen.insert(next);
        order.push(next);
    }
    let step = TAU / order.len() as f64;
    let at: BTreeMap<usize, Place> = order
        .iter()
        .enumerate()
        .map(|(k, &vertex)| {
            (vertex, [(step * k as f64).sin() / step, -(step * k as f64).cos() / step])
        })
        .collect();
    part.iter().map(|vertex| at.get(vertex).copied().unwrap_or_default()).collect()
}

/// A tree by rings around its centre: the vertex of the highest degree, and of the smallest depth among those.
fn ring_layout(neighbours: &[Vec<usize>], part: &[usize]) -> Vec<Place> {
    let depth = |vertex: usize| distances(neighbours, vertex).into_values().max().unwrap_or(0);
    let root = part
        .iter()
        .copied()
        .min_by_key(|&vertex| (std::cmp::Reverse(neighbours[vertex].len()), depth(vertex), vertex))
        .unwrap_or_default();
    // parents before children
    let mut order = vec![(root, root, 0usize)];
    let mut next = 0;
    while let Some(&(vertex, parent, ring)) = order.get(next) {
        next += 1;
        let children = neighbours[vertex].iter().filter(|&&child| child != parent);
        order.extend(children.map(|&child| (child, vertex, ring + 1)));
    }
    // leaves below each vertex, from the outermost ring inwards
    let mut leaves: BTreeMap<usize, f64> = BTreeMap::new();
    for &(vertex, parent, _) in order.iter().rev() {
        let own = *leaves.entry(vertex).or_insert(1.0);
        if vertex != root {
            *leaves.entry(parent).or_insert(0.0) += own;
        }
    }
    let mut sector: BTreeMap<usize, (f64, f64)> = BTreeMap::from([(root, (0.0, TAU))]);
    let mut places: BTreeMap<usize, Place> = BTreeMap::new();
    for &(vertex, parent, ring) in &order {
        let (begin, end) = sector.get(&vertex).copied().unwrap_or((0.0, TAU));
        let angle = (begin + end) / 2.0 - TAU / 4.0;
        places.insert(vertex, [ring as f64 * angle.cos(), ring as f64 * angle.sin()]);
        let children: Vec<usize> =
            neighbours[vertex].iter().copied().filter(|&child| child != parent).collect();
        let total: f64 = children.iter().filter_map(|child| leaves.get(child)).sum();
        let mut at = begin;
        for child in children {
            let share = leaves.get(&child).copied().unwrap_or(1.0) / total.max(1.0);
            sector.insert(child, (at, at + share * (end - begin)));
            at += share * (end - begin);
        }
    }
    part.iter().map(|vertex| places.get(vertex).copied().unwrap_or_default()).collect()
}

/// Classical scaling, then majorisation of Σ (|p − q| − d)² / d².
fn stress_layout(neighbours: &[Vec<usize>], part: &[usize]) -> Vec<Place> {
    let n = part.len();
    let distance: Vec<Vec<f64>> = part
        .iter()
        .map(|&vertex| {
            let found = distances(neighbours, vertex);
            part.iter().map(|other| found.get(other).copied().unwrap_or(n) as f64).collect()
        })
        .collect();
    let mut places = scaled(&distance);
    // vertices that look the same to all others start at one place; a turn of their own sets them apart
    for (k, place) in places.iter_mut().enumerate() {
        let angle = 2.4 * k as f64;
        place[0] += 0.05 * angle.cos();
        place[1] += 0.05 * angle.sin();
    }
    for _ in 0..200 {
        let before = places.clone();
        for (i, place) in places.iter_mut().enumerate() {
            let (mut sum, mut weights) = ([0.0, 0.0], 0.0);
            for (j, other) in before.iter().enumerate().filter(|(j, _)| *j != i) {
                let d = distance[i][j];
                let step = [before[i][0] - other[0], before[i][1] - other[1]];
                let length = step[0].hypot(step[1]).max(1e-9);
                let weight = 1.0 / (d * d);
                for axis in 0..2 {
                    sum[axis] += weight * (other[axis] + d * step[axis] / length);
                }
                weights += weight;
            }
            *place = [sum[0] / weights, sum[1] / weights];
        }
    }
    places
}

/// The plane that keeps most of the squared distances: two eigenvectors by power iteration.
fn scaled(distance: &[Vec<f64>]) -> Vec<Place> {
    let n = distance.len();
    let row_mean: Vec<f64> =
        distance.iter().map(|row| row.iter().map(|d| d * d).sum::<f64>() / n as f64).collect();
    let mean = row_mean.iter().sum::<f64>() / n as f64;
    let product: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            (0..n)
                .map(|j| -0.5 * (distance[i][j].powi(2) - row_mean[i] - row_mean[j] + mean))
                .collect()
        })
        .collect();
    let mut places = vec![[0.0, 0.0]; n];
    let mut first: Vec<f64> = Vec::new();
    for axis in 0..2 {
        let mut vector: Vec<f64> =
            (0..n).map(|k| (1.0 + k as f64 * (axis as f64 + 1.7)).sin()).collect();
        let mut size = 0.0;
        for _ in 0..120 {
            let mut next: Vec<f64> = product
                .iter()
                .map(|row| row.iter().zip(&vector).map(|(a, b)| a * b).sum::<f64>())
                .collect();
            if axis == 1 {
                let along: f64 = next.iter().zip(&first).map(|(a, b)| a * b).sum();
                next.iter_mut().zip(&first).for_each(|(a, b)| *a -= along * b);
            }
            size = next.iter().map(|a| a * a).sum::<f64>().sqrt();
            if size < 1e-12 {
                break;
            }
            vector = next.into_iter().map(|a| a / size).collect();
        }
        for (place, a) in places.iter_mut().zip(&vector) {
            place[axis] = a * size.sqrt();
        }
        first = vector;
    }
    places
}

/// Turned so that the surrounding rectangle is small and lies on its long side: a lattice stands upright.
fn turned(places: Vec<Place>) -> Vec<Place> {
    let at = |angle: f64| -> Vec<Place> {
        let (sin, cos) = angle.sin_cos();
        places.iter().map(|[x, y]| [x * cos - y * sin, x * sin + y * cos]).collect()
    };
    let area = |places: &[Place]| {
        let (low, high) = ends(places);
        let (width, height) = (high[0] - low[0], high[1] - low[1]);
        width * height + if height > width * 1.001 { 1e-6 + 0.01 * width * height } else { 0.0 }
    };
    (0..180)
        .map(|k| at(TAU * k as f64 / 360.0))
        .min_by(|a, b| area(a).total_cmp(&area(b)))
        .unwrap_or(places)
}

fn ends(places: &[Place]) -> (Place, Place) {
    places.iter().fold(([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]), |(low, high), place| {
        (
            [low[0].min(place[0]), low[1].min(place[1])],
            [high[0].max(place[0]), high[1].max(place[1])],
        )
    })
}

/// Moved and scaled into the unit square, keeping proportions.
fn normalised(places: &[Place]) -> Vec<Place> {
    let (low, high) = ends(places);
    let side = (high[0] - low[0]).max(high[1] - low[1]).max(1e-9);
    let middle = [(low[0] + high[0]) / 2.0, (low[1] + high[1]) / 2.0];
    places
        .iter()
        .map(|p| [0.5 + (p[0] - middle[0]) / side, 0.5 + (p[1] - middle[1]) / side])
        .collect()
}

/// The smallest distance between two vertices; 1 if there are not two.
pub(crate) fn closest(places: &[Place]) -> f64 {
    let mut smallest = 1.0f64;
    for (k, a) in places.iter().enumerate() {
        for b in places.iter().skip(k + 1) {
            smallest = smallest.min((a[0] - b[0]).hypot(a[1] - b[1]));
        }
    }
    smallest
}

/// All parts in rows, in the unit square.
fn packed(vertices: usize, parts: &[(Vec<usize>, Vec<Place>)]) -> Vec<Place> {
    // the vertices of all parts at about the same distance
    let boxes: Vec<(Vec<Place>, f64, f64)> = parts
        .iter()
        .map(|(_, places)| {
            let grow = 1.0 / closest_or_one(places);
            let (low, high) = ends(places);
            let moved =
                places.iter().map(|p| [(p[0] - low[0]) * grow, (p[1] - low[1]) * grow]).collect();
            (moved, (high[0] - low[0]) * grow + 1.0, (high[1] - low[1]) * grow + 1.0)
        })
        .collect();
    let widest = boxes.iter().map(|part| part.1).fold(1.0, f64::max);
    let area: f64 = boxes.iter().map(|part| part.1 * part.2).sum();
    let shelves = |row_width: f64| {
        let (mut x, mut y, mut row_height) = (0.0f64, 0.0f64, 0.0f64);
        let mut corners = Vec::new();
        let mut used_width = 0.0f64;
        for (_, width, height) in &boxes {
            if x > 0.0 && x + width > row_width + 1e-9 {
                (x, y, row_height) = (0.0, y + row_height, 0.0);
            }
            corners.push([x, y]);
            x += width;
            used_width = used_width.max(x);
            row_height = row_height.max(*height);
        }
        (corners, used_width.max(y + row_height))
    };
    // of some widths of a row, the one that needs the smallest square
    let best = (0..40)
        .map(|k| shelves(widest.max(area.sqrt() * (0.8 + 0.05 * k as f64))))
        .min_by(|a, b| a.1.total_cmp(&b.1));
    let mut places = vec![[0.5, 0.5]; vertices];
    let Some((corners, _)) = best else { return places };
    for (((part, _), (moved, ..)), corner) in parts.iter().zip(&boxes).zip(corners) {
        for (&vertex, place) in part.iter().zip(moved) {
            places[vertex] = [corner[0] + place[0], corner[1] + place[1]];
        }
    }
    normalised(&places)
}

fn closest_or_one(places: &[Place]) -> f64 {
    if places.len() < 2 {
        return 1.0;
    }
    let (low, high) = ends(places);
    let side = (high[0] - low[0]).max(high[1] - low[1]).max(1e-9);
    (closest(&normalised(places)) * side).max(1e-3)
}
