//! Tables for other programs: typed columns, written as CSV or Parquet.
//!
//! A table is given by its columns, its number of rows, and a function from row and column to a [`Cell`]. What is unknown is
//! null in Parquet and empty in CSV. Reals have as many digits as it takes to read the same number back, and an exponent
//! where that is shorter.
//!
//! CSV is UTF-8 with a header line, and cells are quoted as in RFC 4180. Text that a spreadsheet could take for a formula
//! (`=1+1`) is left as it is: what is written is what is read.
//!
//! Cost: one pass over the rows for CSV, one for each column for Parquet; only one column of 131,072 rows is copied at a
//! time.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// UTF-8 text.
    Text,
    /// A whole number of 64 bits.
    Integer,
    /// A double; in CSV, as many digits as it takes to read the same number back.
    Real,
    /// True or false; in CSV, `true` or `false`.
    Truth,
    /// A list of doubles; in CSV, as JSON: `[0.5,0.25]`.
    Reals,
}

impl ColumnType {
    /// Its name in the documentation.
    pub fn name(self) -> &'static str {
        match self {
            ColumnType::Text => "text",
            ColumnType::Integer => "integer",
            ColumnType::Real => "real",
            ColumnType::Truth => "true or false",
            ColumnType::Reals => "list of reals",
        }
    }
}

/// The name and the type of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// Its type. Cells of another type are null in Parquet.
    pub kind: ColumnType,
}

impl<'a> Heading<'a> {
    /// A heading.
    pub fn new(name: impl Into<Cow<'a, str>>, kind: ColumnType) -> Self {
        Self { name: name.into(), kind }
    }
}

/// One value of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell<'a> {
    /// Unknown.
    Null,
    /// Text.
    Text(Cow<'a, str>),
    /// A whole number.
    Integer(i64),
    /// A number.
    Real(f64),
    /// True or false.
    Truth(bool),
    /// Numbers.
    Reals(&'a [f64]),
}

impl<'a> Cell<'a> {
    /// Text.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Cell::Text(text.into())
    }

    /// A count, if it fits.
    pub fn count(count: u64) -> Self {
        i64::try_from(count).map_or(Cell::Null, Cell::Integer)
    }

    /// As it is written in CSV.
    fn csv(self) -> Cow<'a, str> {
        match self {
            Cell::Null => "".into(),
            Cell::Text(text) => text,
            Cell::Integer(value) => value.to_string().into(),
            // Debug keeps all digits and uses an exponent where that is shorter.
            Cell::Real(value) => format!("{value:?}").into(),
            Cell::Truth(value) => value.to_string().into(),
            Cell::Reals(values) => format!("{values:?}").replace(' ', "").into(),
        }
    }
}

/// Writes a table as CSV.
pub fn write_csv<'a>(
    headings: &[Heading<'_>],
    rows: usize,
    cell: impl Fn(usize, usize) -> Cell<'a>,
    out: impl Write,
) -> io::Result<()> {
    let failed = |error: csv::Error| match error.into_kind() {
        csv::ErrorKind::Io(source) => source,
        other => io::Error::other(format!("{other:?}")),
    };
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(headings.iter().map(|heading| heading.name.as_bytes())).map_err(failed)?;
    for row in 0..rows {
        for column in 0..headings.len() {
            writer.write_field(cell(row, column).csv().as_bytes()).map_err(failed)?;
        }
        writer.write_record(None::<&[u8]>).map_err(failed)?;
    }
    writer.flush()
}

/// Rows of one group of a Parquet file: the unit that readers load at a time.
const GROUP_ROWS: usize = 1 << 17;

type ParquetResult<T> = Result<T, ParquetError>;

/// Writes a table as Parquet, not compressed.
pub fn write_parquet<'a>(
    headings: &[Heading<'_>],
    rows: usize,
    cell: impl Fn(usize, usize) -> Cell<'a>,
    out: impl Write + Send,
) -> io::Result<()> {
    let write = || -> ParquetResult<()> {
        let fields = headings.iter().map(parquet_type).collect::<ParquetResult<Vec<_>>>()?;
        let schema = Type::group_type_builder("trials").with_fields(fields).build()?;
        let mut writer =
            SerializedFileWriter::new(BufWriter::new(out), Arc::new(schema), Default::default())?;
        for begin in (0..rows).step_by(GROUP_ROWS) {
            let end = rows.min(begin + GROUP_ROWS);
            let mut group = writer.next_row_group()?;
            for (column, heading) in headings.iter().enumerate() {
                let cells = (begin..end).map(|row| cell(row, column));
                write_column(&mut group, heading.kind, cells)?;
            }
            group.close()?;
        }
        writer.into_inner()?.flush()?;
        Ok(())
    };
    write().map_err(io::Error::other)
}

/// Every column may be null, so that a reader needs no special case; lists follow the standard's three-level form.
fn parquet_type(heading: &Heading<'_>) -> ParquetResult<Arc<Type>> {
    let leaf = |name, physical, converted, repetition| {
        Type::primitive_type_builder(name, physical)
            .with_repetition(repetition)
            .with_converted_type(converted)
            .build()
            .map(Arc::new)
    };
    let optional =
        |physical, converted| leaf(&heading.name, physical, converted, Repetition::OPTIONAL);
    match heading.kind {
        ColumnType::Text => optional(Physical::BYTE_ARRAY, ConvertedType::UTF8),
        ColumnType::Integer => optional(Physical::INT64, ConvertedType::NONE),
        ColumnType::Real => optional(Physical::DOUBLE, ConvertedType::NONE),
        ColumnType::Truth => optional(Physical::BOOLEAN, ConvertedType::NONE),
        ColumnType::Reals => {
            let element =
                leaf("element", Physical::DOUBLE, ConvertedType::NONE, Repetition::REQUIRED)?;
            let list = Type::group_type_builder("list")
                .with_repetition(Repetition::REPEATED)
                .with_fields(vec![element])
                .build()?;
            let outer = Type::group_type_builder(&heading.name)
                .with_repetition(Repetition::REQUIRED)
                .with_converted_type(ConvertedType::LIST)
                .with_fields(vec![Arc::new(list)])
                .build()?;
            Ok(Arc::new(outer))
        }
    }
}

fn write_column<'a, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    kind: ColumnType,
    cells: impl Iterator<Item = Cell<'a>>,
) -> ParquetResult<()> {
    match kind {
        ColumnType::Text => write_values::<ByteArrayType, W>(group, cells, |cell| match cell {
            Cell::Text(text) => Some(ByteArray::from(text.into_owned().into_bytes())),
            _ => None,
        }),
        ColumnType::Integer => write_values::<Int64Type, W>(group, cells, |cell| match cell {
            Cell::Integer(value) => Some(value),
            _ => None,
        }),
        ColumnType::Real => write_values::<DoubleType, W>(group, cells, |cell| match cell {
            Cell::Real(value) => Some(value),
            _ => None,
        }),
        ColumnType::Truth => write_values::<BoolType, W>(group, cells, |cell| match cell {
            Cell::Truth(value) => Some(value),
            _ => None,
        }),
        ColumnType::Reals => {
            // Definition: 1 where there is an element, 0 for an empty list. Repetition: 0 where a list begins.
            let (mut values, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
            for cell in cells {
                let list = if let Cell::Reals(list) = cell { list } else { &[] };
                values.extend_from_slice(list);
                defined.extend(std::iter::repeat_n(i16::from(!list.is_empty()), list.len().max(1)));
                repeated.extend((0..list.len().max(1)).map(|i| i16::from(i > 0)));
            }
            write_levels::<DoubleType, W>(group, &values, &defined, Some(&repeated))
        }
    }
}

fn write_values<'a, T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    cells: impl Iterator<Item = Cell<'a>>,
    value: impl Fn(Cell<'a>) -> Option<T::T>,
) -> ParquetResult<()> {
    let (mut values, mut defined) = (Vec::new(), Vec::new());
    for cell in cells {
        let value = value(cell);
        defined.push(i16::from(value.is_some()));
        values.extend(value);
    }
    write_levels::<T, W>(group, &values, &defined, None)
}

fn write_levels<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    defined: &[i16],
    repeated: Option<&[i16]>,
) -> ParquetResult<()> {
    let Some(mut writer) = group.next_column()? else {
        return Err(ParquetError::General("more columns than the schema has".to_string()));
    };
    writer.typed::<T>().write_batch(values, Some(defined), repeated)?;
    writer.close()
}

/// Writes a file beside its place and moves it there once it is complete, so that it is replaced whole or not at all.
/// `failed` makes an error of what the system says.
pub fn replace_file<T, E>(
    path: &Path,
    failed: impl Fn(io::Error) -> E,
    write: impl FnOnce(&File) -> Result<T, E>,
) -> Result<T, E> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("export");
    let partial = path.with_file_name(format!(".{name}.{}.partial", std::process::id()));
    let written = File::create(&partial).map_err(&failed).and_then(|file| {
        let written = write(&file)?;
        file.sync_all().map_err(&failed)?;
        std::fs::rename(&partial, path).map_err(&failed)?;
        Ok(written)
    });
    if written.is_err() {
        // Best effort: the first error is the one to tell.
        let _ = std::fs::remove_file(&partial);
    }
    written
}
