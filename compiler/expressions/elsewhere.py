"""What to write instead of a function of Spark SQL, Flink SQL, ksqlDB or PostgreSQL that the language does not have.

A similar name of another system's function is never suggested for it: ``ilike`` is not ``like``, ``to_unixtime`` is not
``from_unixtime``.
"""

from __future__ import annotations

from functools import cache

from vsc.compiler.diagnostics.durations import iso_duration
from vsc.compiler.diagnostics.suggest import distance, misspelt, nearest
from vsc.plan.functions import AGGREGATES, FUNCTIONS

__all__ = ["instead_of", "instead_of_column", "over_a_window"]

_TYPES = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date",
          "timestamp")  # fmt: skip
_SYNONYMS = {
    "power": "pow", "signum": "sign", "strpos": "instr", "regexp_split": "split", "list_reduce": "reduce",
    "generate_series": "sequence", "create_map": "map", "string_repeat": "repeat", "replicate": "repeat",
    "to_hex": "hex", "from_hex": "unhex", "url_extract": "parse_url",
    "arg_max": "max_by", "arg_min": "min_by", "argmax": "max_by", "argmin": "min_by", "array_agg": "collect_list",
    "array_length": "size", "array_size": "size", "average": "avg",
    "array_concat": "concat", "array_construct": "array",
    "btrim": "trim", "cardinality": "size", "ceiling": "ceil", "char_length": "length", "character_length": "length",
    "collect": "collect_list",
    "date_diff": "datediff", "datetrunc": "date_trunc", "dayofmonth": "day", "favg": "avg", "fsum": "sum",
    "endswith": "ends_with", "every": "bool_and",
    "from_base64": "unbase64", "first_value": "first",
    "ifnull": "coalesce", "iff": "if", "iif": "if", "last_value": "last", "lcase": "lower",
    "list": "collect_list", "logical_and": "bool_and", "logical_or": "bool_or", "len": "length", "lstrip": "ltrim",
    "mean": "avg", "mid": "substring", "percentile_approx": "approx_percentile",
    "nvl": "coalesce", "regexp": "regexp_like",
    "regexp_split_to_array": "split", "rlike": "regexp_like", "row": "struct", "rstrip": "rtrim",
    "safe_divide": "try_divide",
    "some": "bool_or", "std": "stddev", "stddev_samp": "stddev", "stdev": "stddev",
    "startswith": "starts_with",
    "substr": "substring",
    "ucase": "upper", "var_samp": "variance",
}  # fmt: skip
"""Other names of functions that the language has, with the same arguments."""

_LETTERS = 4
"""A name that misspells another one has a wrong letter in so many, at most: ``to_base`` is not ``to_date``."""

_EVENT_TIME = "use `event_time()`: a result does not depend on when it is computed"
_OWN = (
    "write a function of your own, in Python: `function NAME (x double) returns double from 'module:name';` "
    "(docs/own-functions.md); `vsc explain VSC112` lists the functions that there are"
)
_UNKNOWN = "`vsc explain VSC112` lists the functions; write others in Python (docs/own-functions.md)"
_FORMAT = "write `date_format(x, 'yyyy-MM-dd HH:mm')`"
_KAFKA = "declare a column for it: the options of `kafka` say what it reads"
_NO_CHANCE = "nothing replaces it: a result depends on the records alone, never on chance"
_PERCENTILE = "`approx_percentile(x, 0.5)` is near it: a value that there is, never one between two"
_RANKED = (
    "an aggregate's `collect_top(x, 10 by y desc)` has the first of a group in order, "
    "and `explode TABLE by ... as (position, x)` makes a row of each, with its place"
)
_BEFORE = (
    "make a versioned table of the stream (`to_table ... materialize versioned`), and "
    "join the stream with it `strictly before`, which finds the row before"
)
_LATER = "a record does not see later ones: join the stream with itself, `within (before = 0 ms, after = 1 hour)`"
_JSON = "write `get_json_object(text, '$.a')`, or `from_json(text, 'a string, b int').a` for a typed value"
_WINDOW = "write `aggregate ... group by ... window tumbling (size = 1 hour)`"
_BOUND = "write `window_start` or `window_end`: they are columns of a windowed table"
_EXPLODE = "write an operation: `stream NAME = explode STREAM by ARRAY as NAME;`"
_PART = "write `year(x)`, `quarter(x)`, `month(x)`, `day(x)`, `hour(x)`, `minute(x)` or `second(x)`, of whole seconds"
_SETS = "write an aggregate for each set of groups"

_HELPS = (
    ("now current_timestamp current_date current_time localtimestamp localtime getdate sysdate "
     "systimestamp proctime rowtime curdate clock_timestamp statement_timestamp current_row_timestamp getutcdate "
     "sysutcdatetime sysdatetime", _EVENT_TIME),
    # numbers
    ("log1p", "write `ln(1 + x)`"),
    ("cot", "write `1 / tan(x)`"),
    ("bin", "write `conv(cast(x as string), 10, 2)`"),
    ("factorial rint bround width_bucket geo_distance acosh asinh atanh", _OWN),
    ("to_base", "write `conv(cast(x as string), 10, 16)`"),
    ("square", "write `x * x`"),
    ("mod", "write `x % y`"),
    ("try_mod", "write `x % nullif(y, 0)`"),
    ("div", "write `cast((x - x % y) / cast(y as decimal(19, 0)) as bigint)`"),
    ("try_add", "write `try_cast(cast(x as decimal(38, 0)) + y as bigint)`, of the type of x"),
    ("try_subtract", "write `try_cast(cast(x as decimal(38, 0)) - y as bigint)`, of the type of x"),
    ("try_multiply", "write `try_cast(cast(x as decimal(38, 0)) * y as bigint)`, of the type of x"),
    ("isnan is_nan", "write `coalesce(x = cast('NaN' as double), false)`: NaN is equal to itself"),
    ("zeroifnull", "write `coalesce(x, 0)`"),
    ("nullifzero", "write `nullif(x, 0)`"),
    ("to_number to_decimal try_to_number tonumber", "write `cast(x as decimal(12, 2))`, or `try_cast` for a null "
     "where it fails"),
    ("to_int to_integer toint parse_int", "write `cast(x as int)`, or `try_cast` for a null where it fails"),
    ("to_double parse_float", "write `cast(x as double)`, or `try_cast` for a null where it fails"),
    ("convert try_convert safe_cast cast_to", "write `cast(x as TYPE)`, or `try_cast(x as TYPE)` for a null where it "
     "fails"),
    ("to_varchar to_string str tostring", "write `cast(x as string)`"),
    ("rand random randn uuid gen_random_uuid monotonically_increasing_id shuffle", _NO_CHANCE),
    ("expr", "write the expression itself: a topology is not made of texts"),
    ("crc32 sha sha1 base64 encode to_base64 xxhash32 aes_encrypt", _OWN),
    ("hash murmur_hash murmur3_hash farm_fingerprint", "`xxhash64(x)` gives other numbers"),
    ("sha224 sha256 sha384 sha512", "write `sha2(x, 256)`"),
    # conditions
    ("isnull", "write `x is null`; with two arguments `coalesce(x, y)`"),
    ("isnotnull", "write `x is not null`"),
    ("nvl2", "write `if(x is not null, y, z)`"),
    ("decode switch choose", "write `case x when ... then ... end`"),
    ("equal_null", "write `coalesce(x = y, x is null and y is null)`"),
    ("booland boolor boolxor", "write `and`, `or` or `<>` between the two"),
    # text
    ("position locate charindex", "write `instr(text, part)`: where `part` first occurs, from 1"),
    ("index_of indexof", "write `instr(text, part) - 1`: where `part` first occurs, from 0"),
    ("regexp_substr", "write `if(regexp_like(text, 'a.'), regexp_extract(text, 'a.', 0), null)`"),
    ("regexp_count", "write `size(split(text, 'a.')) - 1`"),
    ("regexp_matches", "write `regexp_like(text, 'a.')` for whether one is there, `regexp_extract(text, 'a(.)')` for "
     "what the group matches first"),
    ("space", "write `repeat(' ', n)`"),
    ("left", "write `substring(x, 1, n)`"),
    ("right", "write `substring(x, -3)`, the last 3 characters"),
    ("ilike", "write `lower(x) like 'a%'`"),
    ("string_to_array", "write `split(x, ',')`"),
    ("split_part splitpart", "write `split(x, ',')[0]` for the first part"),
    ("substring_index", "write `split(x, ',')[0]` for what stands before the first one"),
    ("array_join array_to_string", "write `if(texts is null, null, concat_ws(',', texts))`"),
    ("regexp_extract_all regexp_instr find_in_set format format_string printf format_number soundex levenshtein ascii "
     "chr overlay quote_literal mask str_to_map split_to_map", _OWN),
    # time
    ("to_char strftime format_datetime format_date format_timestamp formatdatetime timestamptostring datetostring "
     "time_format to_iso8601", _FORMAT),
    ("dayname monthname", "write `date_format(x, 'EEE')` for a day, `date_format(x, 'MMM')` for a month"),
    ("convert_timezone convert_tz", "write `from_utc_timestamp(to_utc_timestamp(x, 'America/New_York'), "
     "'Europe/Berlin')`: what clocks show there when those of the first zone show x"),
    ("timezone at_timezone with_timezone", "write `from_utc_timestamp(x, 'Europe/Berlin')`: what clocks show there"),
    ("make_interval", "write a duration: `x + 30 days`"),
    ("last_day eomonth", "write `date_add(cast(date_trunc('month', date_add(cast(date_trunc('month', d) as date), 31)) "
     "as date), -1)`"),
    ("add_months months_between next_day months years", _OWN),
    ("date_part datepart extract", _PART),
    ("timestampdiff timediff timestamp_diff datetime_diff", "write `datediff(end, start)` for days by the calendar, "
     "`cast((unix_millis(b) - unix_millis(a)) / 1000 as bigint)` for seconds"),
    ("dateadd timestampadd date_sub_interval timestamp_add datetime_add adddate", "write `x + 1 day` for a timestamp, "
     "`date_add(x, 1)` for a date"),
    ("date_sub subdate", "write `date_add(x, -days)`"),
    ("dayofyear doy day_of_year", "write `datediff(x, cast(date_trunc('year', x) as date)) + 1`"),
    ("week weekofyear isoweek week_of_year", "`date_trunc('week', x)` is the start of its week; a function of your own "
     "can give the number"),
    ("weekday", "write `(dayofweek(x) + 5) % 7`: 0 is Monday"),
    ("isodow day_of_week", "write `(dayofweek(x) + 5) % 7 + 1`: 1 is Monday"),
    ("strptime parse_timestamp parse_datetime stringtotimestamp from_iso8601_timestamp",
     "write `to_timestamp(text, 'yyyy-MM-dd HH:mm:ss')`"),
    ("parse_date stringtodate", "write `to_date(text, 'yyyy-MM-dd')`"),
    ("to_date_time todate to_datetime str_to_date date_parse", "write `to_timestamp(text, 'yyyy-MM-dd')`"),
    ("make_date date_from_parts datefromparts", "write `to_date(cast(y as string) || '-' || cast(n as string) || '-' "
     "|| cast(days as string), 'yyyy-M-d')`"),
    ("make_timestamp timestamp_from_parts", "join the parts to a text with `||`, and read it: `to_timestamp(text, "
     "'yyyy-M-d H:m:s')`"),
    ("to_timestamp_ms from_unixtime_ms", "write `timestamp_millis(x)`"),
    ("to_timestamp_ltz to_timestamp_ntz to_timestamp_tz",
     "write `to_timestamp(text)`, or `timestamp_millis(x)` for a number"),
    ("trunc truncate", "write `cast(date_trunc('month', x) as date)` for a date, `cast(x as bigint)` for a number"),
    ("epoch_ms epoch_millis to_millis", "write `unix_millis(x)`, or `timestamp_millis(x)` the other way round"),
    ("epoch to_epoch epoch_seconds to_unixtime tounixtime unixtime to_unix_seconds", "write `unix_seconds(x)`, of "
     "whole seconds"),
    ("timestamp_micros", "write `timestamp_millis(cast(x / 1000 as bigint))`, to the millisecond"),
    ("unix_micros", "write `unix_millis(x) * 1000`, to the millisecond"),
    ("unix_date", "write `datediff(x, to_date('1970-01-01'))`"),
    ("unix_timestamp", "write `unix_seconds(x)` for a timestamp, `unix_seconds(event_time())` for now"),
    ("to_unix_timestamp", "write `unix_seconds(x)` for a timestamp, `unix_seconds(to_timestamp(text))` for a text"),
    # arrays, maps, structs
    ("get", "write `if(i >= 0 and i < size(a), a[i], null)`"),
    ("try_element_at nth", "write `if(abs(i) <= size(a), element_at(a, i), null)`; of a map `m['key']`"),
    ("array_sort", "write `sort_array(a)`, which puts nulls first"),
    ("array_max", "write `reduce(a, cast(null as int), (found, e) -> greatest(found, e))`, of the elements' type"),
    ("array_min", "write `reduce(a, cast(null as int), (found, e) -> least(found, e))`, of the elements' type"),
    ("array_append", "write `concat(a, array(i))`"),
    ("array_prepend", "write `concat(array(i), a)`"),
    ("array_union", "write `array_distinct(concat(x, y))`"),
    ("array_remove", "write `filter(a, e -> coalesce(e <> 1, true))`, which keeps nulls"),
    ("array_compact", "write `filter(a, e -> e is not null)`"),
    ("array_filter list_filter", "write `filter(a, e -> e > 1)`, with the condition of those that stay"),
    ("list_transform array_transform list_apply array_apply array_map", "write `transform(a, e -> e + 1)`"),
    ("any_match array_any list_any", "write `exists(a, e -> e > 1)`"),
    ("any", "write `exists(a, e -> e > 1)` for an array, `x in (y, z)` for several values; in an aggregate, "
     "`bool_or(condition)`"),
    ("all_match array_all list_all", "write `forall(a, e -> e > 1)`"),
    ("all", "write `forall(a, e -> e > 1)` for an array, `x = y and x = z` for several values; in an aggregate, "
     "`bool_and(condition)`"),
    ("none_match", "write `not exists(a, e -> e > 1)`"),
    ("array_position array_intersect array_except arrays_zip arrays_overlap zip_with", _OWN),
    ("map_from_arrays as_map", "write `map_from_entries(transform(a, (e, i) -> struct(e, texts[i])))`"),
    ("map_filter", "write `map_from_entries(filter(map_entries(m), e -> e.value > 1))`"),
    ("element", "write `if(size(a) > 0, a[0], null)`, the first one"),
    ("transform_keys", "write `map_from_entries(transform(map_entries(m), e -> struct(upper(e.key), e.value)))`"),
    ("map_contains_key map_contains", "write `array_contains(map_keys(m), 'key')`"),
    ("dict", "write `map('a', x, 'b', y)`"),
    ("named_struct struct_pack", "write `struct(x as a, y as b)`"),
    ("explode explode_outer posexplode unnest inline inline_outer stack flatten lateral", _EXPLODE),
    # JSON
    ("json_value json_query json_extract json_extract_scalar json_extract_path json_extract_path_text "
     "extractjsonfield json_tuple parse_json variant_get json_get jsonb_extract_path_text json_unquote", _JSON),
    ("object_construct json_object json_build_object to_jsonb row_to_json to_json_string",
     "write `to_json(struct(x as a, y as b))`"),
    ("json_array json_build_array", "write `to_json(array(x, y))`"),
    ("json_array_contains", "write `array_contains(from_json(text, 'array<string>'), part)`"),
    ("json_array_length", "write `size(from_json(text, 'array<string>'))`"),
    ("json_object_keys json_keys", "write `map_keys(from_json(text, 'map<string, string>'))`"),
    ("is_json is_valid_json json_valid", _OWN),
    ("from_csv to_csv from_xml to_xml from_protobuf from_avro",
     "the `format` of a source reads rows; for a column, a function of your own can do it"),
    # aggregates
    ("median percentile percentile_cont percentile_disc quantile quantile_cont quantile_disc "
     "approx_median approx_quantile approx_quantiles tdigest_agg", _PERCENTILE),
    ("wavg", "write `try_divide(sum(x * y), sum(y))`, where `y` is the weight"),
    ("mode corr mad sem covar_pop covar_samp skewness kurtosis histogram bit_and bit_or bit_xor bool_xor",
     "keep the values with `collect_list(x)`, and call a function of your own on them in a `map`"),
    ("topk top_k topn top_n", "write `collect_top(x, 3 by x desc)`"),
    ("topkdistinct", "write `slice(sort_array(collect_set(x), false), 1, 3)`"),
    ("approx_top_k", "count by value, then aggregate again: `collect_top(struct(x, n), 3 by n desc)`"),
    ("count_if countif", "write `count(case when condition then 1 end)`"),
    ("sum_if sumif", "write `sum(case when condition then x end)`"),
    ("try_sum", "write `try_cast(sum(cast(x as decimal(28, 0))) as bigint)`, of the type of a sum"),
    ("try_avg", "write `avg(x)`"),
    ("sum_distinct", "write `reduce(collect_set(x), cast(null as bigint), (sum, e) -> coalesce(sum, 0) + e)`, "
     "with `double`, or a `decimal` of 38 digits, where x is one"),
    ("avg_distinct", "write `reduce(collect_set(x), cast(null as double), (sum, e) -> coalesce(sum, 0) + e) / "
     "nullif(count(distinct x), 0)`"),
    ("var_pop", "write `if(count(x) = 1, cast(0 as double), variance(x) * (count(x) - 1) / count(x))`"),
    ("stddev_pop std_pop",
     "write `sqrt(if(count(x) = 1, cast(0 as double), variance(x) * (count(x) - 1) / count(x)))`"),
    ("approx_count_distinct count_distinct approx_distinct hll_count nunique uniq", "write `count(distinct x)`"),
    ("any_value arbitrary", "write `first(x)` or `last(x)`"),
    ("latest_by_offset", "write `last(x) ignore nulls`: the last one by event time"),
    ("earliest_by_offset", "write `first(x) ignore nulls`: the first one by event time"),
    ("string_agg listagg group_concat wm_concat", "write `if(count(x) > 0, concat_ws(',', collect_list(x)), null)`"),
    ("row_number rank dense_rank percent_rank ntile nth_value cume_dist", _RANKED),
    ("lag", _BEFORE),
    ("lead", _LATER),
    ("rollup cube grouping grouping_id grouping_sets", _SETS),
    # windows
    ("tumble tumbling hop hopping cumulate window time_window time_bucket date_bin time_slice timewindow", _WINDOW),
    ("session session_window", "write `aggregate ... group by ... window session (gap = 5 minutes)`"),
    ("tumble_start tumble_end tumble_rowtime hop_start hop_end session_start session_end windowstart windowend "
     "window_start window_end window_time", _BOUND),
    # others
    ("as_value", "give the column a second name: `k as name`"),
    ("lit col column", "write the value or the column itself"),
    ("typeof pg_typeof", "`vsc compile FILE --emit topology` shows every type"),
    ("days hours try_make_timestamp time_trunc try_to_time sum0", _UNKNOWN),
    ("headers rowkey rowpartition rowoffset", _KAFKA),
    ("current_user session_user user database current_database version", "give a variable, `${name}`"),
)  # fmt: skip
"""Names of other systems' functions, with what to write here."""


@cache
def _helps() -> dict[str, str]:
    """The helps by name, and by the name without its underscores: ``toUnixTimestamp`` is ``to_unix_timestamp``."""
    helps = {name: help for names, help in _HELPS for name in names.split()}
    plain = {name.replace("_", ""): help for name, help in helps.items()}
    return {name: help for name, help in plain.items() if name not in FUNCTIONS} | helps


def instead_of(name: str) -> tuple[str, str | None]:
    """The help for a call of `name`, which is not a function, and the name that certainly replaces it."""
    lower, known = name.lower(), {**FUNCTIONS, **AGGREGATES}
    if lower in _helps():
        return _helps()[lower], None
    if lower in _SYNONYMS:
        return f"write `{known[_SYNONYMS[lower]].signature}`", _SYNONYMS[lower]
    if lower in (*_TYPES, "decimal"):
        return f"write `cast(x as {lower})`", None
    similar = nearest(name, known)
    if similar is None or distance(lower, similar) * _LETTERS > max(len(name), len(similar), _LETTERS):
        return _UNKNOWN, None
    return f"did you mean `{similar}`?", misspelt(name, known)


def over_a_window(name: str) -> str | None:
    """The help for a function that other systems have with ``over (...)`` alone; None for another one."""
    help = _helps().get(name.lower())
    return help if help in (_RANKED, _BEFORE, _LATER) else None


def instead_of_column(name: str, near: str | None) -> str | None:
    """The help for `name`, which is not a column: what it means in other systems; `near` names a similar column."""
    help, duration = _helps().get(name.lower()), iso_duration(name)
    if help is _BOUND:
        return "a table with a `window` has the columns `window_start` and `window_end` by itself"
    if help is _EVENT_TIME or (near is None and help is _KAFKA):
        return help
    return near or (None if duration is None else f"write `{duration}`")
