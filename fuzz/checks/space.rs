// What must hold for every input: shared by the fuzz target and the tests of the module `space`,
// each of which brings the types into scope. An input is a space as JSON and, after a line break,
// numbers of 8 bytes that are used as coordinates, values and levels.

use super::{Domain, Parameter, Point, Space, Value};

/// Panics if an invariant is broken; says whether the input held a space.
pub(super) fn check(input: &[u8]) -> bool {
    let (text, numbers) = match input.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&input[..end], &input[end + 1..]),
        None => (input, &[][..]),
    };
    let Ok(space) = serde_json::from_slice::<Space>(text) else {
        return false;
    };
    let written = serde_json::to_string(&space).expect("a space can be written");
    let again: Space = serde_json::from_str(&written).expect("what was written can be read");
    assert_eq!(again, space);

    // Numbers that are missing are made up, different for each coordinate.
    let mut chunks = numbers.chunks_exact(8);
    let bits: Vec<u64> = (1..=space.dimension() as u64)
        .map(|d| match chunks.next() {
            Some(chunk) => u64::from_le_bytes(chunk.try_into().expect("8 bytes")),
            None => d.wrapping_mul(0x9E37_79B9_7F4A_7C15),
        })
        .collect();
    let raw: Vec<f64> = bits.iter().map(|bits| f64::from_bits(*bits)).collect();
    let uniform: Vec<f64> = bits
        .iter()
        .map(|bits| (bits >> 11) as f64 * 2_f64.powi(-53))
        .collect();

    check_point(
        &space,
        &space
            .from_uniform(&uniform)
            .expect("uniform numbers are accepted"),
    );
    check_point(
        &space,
        &space.snap(&uniform).expect("uniform numbers are accepted"),
    );
    check_point(
        &space,
        &space
            .from_uniform(&vec![0.0; raw.len()])
            .expect("0 is accepted"),
    );
    check_point(
        &space,
        &space
            .from_uniform(&vec![1.0; raw.len()])
            .expect("1 is accepted"),
    );

    let snapped = space.snap(&raw);
    assert_eq!(snapped.is_ok(), !raw.iter().any(|number| number.is_nan()));
    if let Ok(snapped) = &snapped {
        check_point(&space, snapped);
    }
    let quantiles = space.from_uniform(&raw);
    assert_eq!(
        quantiles.is_ok(),
        raw.iter().all(|number| (0.0..=1.0).contains(number))
    );
    let point = Point(raw.clone());
    let belongs = space.check(&point).is_ok();
    assert_eq!(belongs, snapped.as_ref() == Ok(&point));
    assert_eq!(belongs, space.decode(&point).is_ok());

    for (d, parameter) in space.parameters().iter().enumerate() {
        check_levels(&space, d, bits[d]);
        check_values(parameter, bits[d]);
    }
    true
}

/// Checks a point that belongs to the space.
fn check_point(space: &Space, point: &Point) {
    space.check(point).expect("the point belongs to the space");
    assert_eq!(space.snap(point.as_slice()).as_ref(), Ok(point));
    let values = space.decode(point).expect("a point can be decoded");
    for (parameter, value) in space.parameters().iter().zip(&values) {
        assert!(
            belongs(parameter, value),
            "{value} does not belong to {parameter:?}"
        );
    }
    let back = space
        .encode(&values)
        .expect("decoded values can be encoded");
    let again = space.decode(&back).expect("encoded values can be decoded");
    for (d, (value, again)) in values.iter().zip(&again).enumerate() {
        assert!(
            same(value, again),
            "{value} became {again} in {:?}",
            space.parameters()[d]
        );
        if space.levels(d).is_some() {
            assert_eq!(back.as_slice()[d], point.as_slice()[d]);
        }
    }
}

/// Checks some levels of a finite parameter.
fn check_levels(space: &Space, d: usize, bits: u64) {
    let Some(count) = space.levels(d) else {
        return;
    };
    assert!(count > 0);
    for level in [
        0,
        bits % count,
        (bits % count + 1) % count,
        count / 2,
        count - 1,
    ] {
        let coordinate = space.coordinate(d, level);
        assert!((0.0..=1.0).contains(&coordinate));
        assert_eq!(
            space.level(d, coordinate),
            level,
            "of {:?}",
            space.parameters()[d]
        );
    }
    let number = f64::from_bits(bits);
    assert!(space.level(d, number) < count);
    if !number.is_nan() {
        let inside = number.clamp(0.0, 1.0);
        let distance = |level| (space.coordinate(d, level) - inside).abs();
        let nearest = space.level(d, number);
        assert!(nearest == 0 || distance(nearest) < distance(nearest - 1));
        assert!(nearest + 1 == count || distance(nearest) <= distance(nearest + 1));
    }
}

/// Checks that values of every kind are either refused or given back.
fn check_values(parameter: &Parameter, bits: u64) {
    let space = Space::new(vec![parameter.clone()]).expect("the parameter is valid");
    let number = f64::from_bits(bits);
    let mut values = vec![
        Value::Boolean(bits % 2 == 1),
        Value::Integer(bits as i64),
        Value::Integer((bits % 1024) as i64),
        Value::Real(number),
        Value::Real((bits % 1024) as f64),
        Value::Choice(bits.to_string()),
    ];
    match &parameter.domain {
        &Domain::Real { low, high, .. } => {
            values.extend([Value::Real(low), Value::Real(high)]);
            let share = (bits >> 11) as f64 * 2_f64.powi(-53);
            values.push(Value::Real(
                (low * (1.0 - share) + high * share).clamp(low, high),
            ));
        }
        &Domain::Integer { low, high, .. } => {
            values.extend([Value::Integer(low), Value::Integer(high)]);
            values.extend([Value::Real(low as f64), Value::Real(high as f64)]);
        }
        Domain::Ordinal { levels } => {
            values.push(Value::Real(levels[bits as usize % levels.len()]));
        }
        Domain::Boolean => {}
        Domain::Categorical { choices } => {
            values.push(Value::Choice(
                choices[bits as usize % choices.len()].clone(),
            ));
        }
    }
    for value in values {
        let point = space.encode(std::slice::from_ref(&value));
        assert_eq!(
            point.is_ok(),
            accepts(parameter, &value),
            "{value} in {parameter:?}"
        );
        let Ok(point) = point else {
            continue;
        };
        check_point(&space, &point);
        let decoded = |coordinate| {
            let point = Point(vec![coordinate]);
            space.decode(&point).expect("the coordinate is valid")[0].clone()
        };
        let coordinate = point.as_slice()[0];
        let given = decoded(coordinate);
        if space.levels(0).is_some() {
            // Integers are compared as such: as f64, different ones can be equal.
            let equal = match (&given, &value) {
                (Value::Integer(given), Value::Real(real)) => *given as f64 == *real,
                (Value::Real(given), Value::Integer(_)) => Some(*given) == value.as_f64(),
                (given, value) => given == value,
            };
            assert!(equal, "{value} became {given} in {parameter:?}");
            continue;
        }
        // No neighbouring coordinate is nearer.
        let value = value.as_f64().expect("a real has a number");
        let error = |coordinate| (decoded(coordinate).as_f64().expect("a number") - value).abs();
        assert!(error(coordinate) <= error(coordinate.next_down().max(0.0)));
        assert!(error(coordinate) <= error(coordinate.next_up().min(1.0)));
    }
}

/// Whether a value is what the parameter gives out.
fn belongs(parameter: &Parameter, value: &Value) -> bool {
    match (&parameter.domain, value) {
        (Domain::Integer { .. }, Value::Integer(_))
        | (Domain::Real { .. } | Domain::Ordinal { .. }, Value::Real(_))
        | (Domain::Boolean, Value::Boolean(_))
        | (Domain::Categorical { .. }, Value::Choice(_)) => accepts(parameter, value),
        _ => false,
    }
}

/// Whether the parameter should accept a value, by the plainest possible reading.
fn accepts(parameter: &Parameter, value: &Value) -> bool {
    match (&parameter.domain, value) {
        (Domain::Real { low, high, .. }, Value::Real(number)) => low <= number && number <= high,
        (Domain::Real { low, high, .. }, Value::Integer(number)) => {
            *low <= *number as f64 && *number as f64 <= *high
        }
        (
            Domain::Integer {
                low, high, step, ..
            },
            Value::Integer(_) | Value::Real(_),
        ) => {
            let number = match value {
                Value::Integer(number) => i128::from(*number),
                // Anything beyond the range of the conversion is beyond that of the domain.
                _ => match value.as_f64() {
                    Some(number) if number == number.trunc() => number as i128,
                    _ => return false,
                },
            };
            let (low, high) = (i128::from(*low), i128::from(*high));
            low <= number && number <= high && (number - low) % i128::from(*step) == 0
        }
        (Domain::Ordinal { levels }, Value::Real(number)) => levels.contains(number),
        (Domain::Ordinal { levels }, Value::Integer(number)) => {
            let exact = *number as f64 as i128 == i128::from(*number);
            exact && levels.contains(&(*number as f64))
        }
        (Domain::Boolean, Value::Boolean(_)) => true,
        (Domain::Categorical { choices }, Value::Choice(choice)) => choices.contains(choice),
        _ => false,
    }
}

/// Whether two values are equal bit for bit.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Real(one), Value::Real(other)) => one.to_bits() == other.to_bits(),
        _ => one == other,
    }
}
