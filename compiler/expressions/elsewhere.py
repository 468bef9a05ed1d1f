"""What to write instead of a function of Spark SQL, Flink SQL, ksqlDB or PostgreSQL that the language does not have.

A similar name of another system's function is never suggested for it: ``ilike`` is not ``like``, ``to_unixtime`` is not
``from_unixtime``.
"""

from __future__ import annotations

from functools import cache

from vsc.compiler.diagnostics.durations import iso_duration
from vsc.compiler.diagnostics.suggest import misspelt, nearest
from vsc.plan.functions import AGGREGATES, FUNCTIONS

__all__ = ["instead_of", "instead_of_column"]

_TYPES = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date",
          "timestamp")  # fmt: skip
_SYNONYMS = {
    "power": "pow", "signum": "sign", "strpos": "instr", "regexp_split": "split", "list_reduce": "reduce",
    "generate_series": "sequence", "create_map": "map", "string_repeat": "repeat", "replicate": "repeat",
    "to_hex": "hex", "from_hex": "unhex", "url_extract": "parse_url",
    "arg_max": "max_by", "arg_min": "min_by", "argmax": "max_by", "argmin": "min_by", "array_agg": "collect_list",
    "array_length": "size", "array_size": "size", "array_sort": "sort_array", "average": "avg",
    "array_construct": "array",
    "btrim": "trim", "cardinality": "size", "ceiling": "ceil", "char_length": "length", "character_length": "length",
    "collect": "collect_list",
    "date_diff": "datediff", "dayofmonth": "day", "endswith": "ends_with", "every": "bool_and",
    "from_base64": "unbase64", "first_value": "first",
    "ifnull": "coalesce", "iff": "if", "iif": "if", "last_value": "last", "lcase": "lower",
    "list": "collect_list", "logical_and": "bool_and", "logical_or": "bool_or", "len": "length", "lstrip": "ltrim",
    "mean": "avg", "mid": "substring", "percentile_approx": "approx_percentile",
    "nvl": "coalesce", "regexp": "regexp_like", "regexp_matches": "regexp_like",
    "regexp_split_to_array": "split", "rlike": "regexp_like", "row": "struct", "rstrip": "rtrim",
    "safe_divide": "try_divide",
    "some": "bool_or", "std": "stddev", "stddev_samp": "stddev", "stdev": "stddev",
    "startswith": "starts_with",
    "substr": "substring",
    "ucase": "upper", "var_samp": "variance",
}  # fmt: skip
"""Other names of functions that the language has, with the same arguments."""

_EVENT_TIME = "use `event_time()`: a result does not depend on when it is computed"
_NO_POSITION = "write `instr(text, part)`: where `part` first occurs, from 1"
_PATTERN = "write `regexp_extract(text, 'a(.)')`, which gives what the group matches first"
_NO_TEXT = "nothing replaces it: `substring`, `concat`, `replace`, `translate`, `lpad` and `repeat` build texts"
_NO_MATHS = "a function of your own can do it: `vsc explain VSC112` lists the functions that there are"
_ANY = "write `exists(a, e -> e > 1)`"
_ALL = "write `forall(a, e -> e > 1)`"
_KEPT = "write `filter(a, e -> e > 1)`, which keeps the elements that the condition holds for"
_MAPPED = "write `transform(a, e -> e + 1)`"
_KAFKA = "declare a column for it: the options of `kafka` say what it reads"
_OVERFLOW = "write the operator, and cast to a larger type before it: `cast(x as decimal(38, 2))`"
_FORMAT = "write `date_format(x, 'yyyy-MM-dd HH:mm')`"
_ZONES = "write `from_utc_timestamp(x, 'Europe/Berlin')`: what clocks show there"
_NAME = "write `date_format(x, 'EEE')` for a day, `date_format(x, 'MMM')` for a month"
_NO_MONTHS = "nothing replaces it: add days with `date_add(x, 30)`, a duration with `x + 30 days`"
_NO_ARRAY = (
    "nothing replaces it: `explode STREAM by ARRAY as NAME` makes a row of each element, to filter or to aggregate"
)
_NO_MAP = "nothing replaces it: an element of a map is `m['key']`, and `map_entries(m)` are all"
_NO_CHANCE = "nothing replaces it: a result depends on the records alone, never on chance"
_NO_AGGREGATE = (
    "nothing replaces it: an aggregate has `count`, `sum`, `avg`, `min`, `max` and `collect_list`, among others"
)
_PERCENTILE = "write `approx_percentile(x, 0.5)`: a value that there is, never one between two"
_NO_WINDOW = (
    "there are no window functions: an aggregate's `first`, `last`, `min_by` and `max_by` keep a value of one row"
)
_NO_CODE = "nothing replaces it: `md5`, `sha2` and `xxhash64` make hashes"
_JSON = "write `from_json(text, 'a string, b int').a`: the schema says what to read"
_TO_JSON = "write `to_json(struct(x as a, y as b))`"
_WINDOW = "write `aggregate ... group by ... window tumbling (size = 1 hour)`"
_BOUND = "write `window_start` or `window_end`: they are columns of a windowed table"
_EXPLODE = "write an operation: `stream NAME = explode STREAM by ARRAY as NAME;`"
_JOINED = "write `collect_list(x) as texts`, and join them in a `map`: `concat_ws(',', texts)`"
_PART = "write `year(x)`, `quarter(x)`, `month(x)`, `day(x)`, `hour(x)`, `minute(x)` or `second(x)`"
_CAST = "write `cast(x as TYPE)`, or `try_cast(x as TYPE)` for a null where it fails"
_NUMBER = "write `cast(x as decimal(12, 2))`, or `try_cast` for a null where it fails"
_DIFFERENCE = "write `datediff(end, start)` for days, `(unix_millis(b) - unix_millis(a)) / 1000` for seconds"
_ADD = "write `x + 1 day` for a timestamp, `date_add(x, 1)` for a date"
_SETS = "write an aggregate for each set of groups"

_HELPS = (
    ("now current_timestamp current_date current_time localtimestamp localtime getdate sysdate "
     "systimestamp proctime rowtime curdate clock_timestamp statement_timestamp current_row_timestamp getutcdate "
     "sysutcdatetime sysdatetime", _EVENT_TIME),
    ("position locate charindex find_in_set index_of indexof", _NO_POSITION),
    ("regexp_extract_all regexp_substr regexp_count regexp_instr", _PATTERN),
    ("space format format_string printf format_number soundex levenshtein "
     "ascii chr overlay quote_literal mask splitpart initialcap", _NO_TEXT),
    ("log1p cot "
     "factorial rint bround bin width_bucket geo_distance", _NO_MATHS),
    ("to_char strftime format_datetime format_date format_timestamp formatdatetime timestamptostring datetostring "
     "time_format to_iso8601", _FORMAT),
    ("dayname monthname", _NAME),
    ("convert_timezone convert_tz timezone at_timezone with_timezone", _ZONES),
    ("make_interval", "write a duration: `x + 30 days`"),
    ("add_months months_between last_day eomonth next_day months years", _NO_MONTHS),
    ("array_max array_min array_position array_union "
     "array_intersect array_except arrays_zip arrays_overlap "
     "zip_with array_append array_prepend array_concat", _NO_ARRAY),
    ("any_match array_any list_any", _ANY),
    ("any", f"{_ANY} for an array, `x in (y, z)` for several values; in an aggregate, `bool_or(condition)`"),
    ("all_match array_all list_all", _ALL),
    ("all", f"{_ALL} for an array, `x not in (y, z)` for several values; in an aggregate, `bool_and(condition)`"),
    ("none_match", "write `not exists(a, e -> e > 1)`"),
    ("array_remove array_filter list_filter array_compact", _KEPT),
    ("list_transform array_transform list_apply array_apply array_map", _MAPPED),
    ("map_from_arrays map_filter str_to_map split_to_map "
     "as_map map_contains_key dict", _NO_MAP),
    ("rand random randn uuid gen_random_uuid monotonically_increasing_id shuffle", _NO_CHANCE),
    ("median percentile percentile_cont percentile_disc quantile quantile_cont quantile_disc "
     "approx_median approx_quantile approx_quantiles tdigest_agg", _PERCENTILE),
    ("mode corr covar_pop covar_samp skewness kurtosis histogram "
     "topkdistinct bit_and bit_or bit_xor bool_xor", _NO_AGGREGATE),
    ("booland boolor boolxor", "write `and`, `or` or `<>` between the two"),
    ("row_number rank dense_rank percent_rank ntile lag lead nth_value cume_dist", _NO_WINDOW),
    ("crc32 sha sha1 base64 encode to_base64 xxhash32 aes_encrypt", _NO_CODE),
    ("json_value json_query json_extract json_extract_scalar json_extract_path json_extract_path_text "
     "extractjsonfield json_tuple parse_json variant_get json_get jsonb_extract_path_text json_unquote", _JSON),
    ("object_construct json_object json_build_object to_jsonb json_array json_build_array row_to_json "
     "to_json_string", _TO_JSON),
    ("tumble tumbling hop hopping cumulate window time_window time_bucket date_bin time_slice timewindow", _WINDOW),
    ("session session_window", "write `aggregate ... group by ... window session (gap = 5 minutes)`"),
    ("tumble_start tumble_end tumble_rowtime hop_start hop_end session_start session_end windowstart windowend "
     "window_start window_end window_time", _BOUND),
    ("explode explode_outer posexplode unnest inline inline_outer stack flatten lateral", _EXPLODE),
    ("string_agg listagg group_concat wm_concat array_to_string", _JOINED),
    ("date_part datepart extract", _PART),
    ("convert try_convert safe_cast cast_to to_varchar to_string str tostring", _CAST),
    ("to_number to_decimal to_int to_integer to_double parse_int parse_float try_to_number tonumber toint", _NUMBER),
    ("timestampdiff timediff timestamp_diff datetime_diff", _DIFFERENCE),
    ("dateadd timestampadd date_sub_interval timestamp_add datetime_add adddate", _ADD),
    ("rollup cube grouping grouping_id grouping_sets", _SETS),
    ("approx_count_distinct count_distinct approx_distinct hll_count nunique uniq", "write `count(distinct x)`"),
    ("avg_distinct sum_distinct", "nothing replaces it: only `count` takes `distinct`"),
    ("topk top_k topn top_n approx_top_k", "write `collect_top(x, 3 by x desc)`"),
    ("count_if countif", "write `count(case when x then 1 end)`"),
    ("sum_if sumif", "write `sum(case when condition then x end)`"),
    ("stddev_pop std_pop var_pop", "write `variance(x) * (count(x) - 1) / count(x)`, the variance of all"),
    ("any_value arbitrary", "write `first(x)` or `last(x)`"),
    ("latest_by_offset", "write `last(x)`: the last one by event time"),
    ("earliest_by_offset", "write `first(x)`: the first one by event time"),
    ("strptime parse_timestamp parse_datetime stringtotimestamp from_iso8601_timestamp",
     "write `to_timestamp(text, 'yyyy-MM-dd HH:mm:ss')`"),
    ("parse_date stringtodate", "write `to_date(text, 'yyyy-MM-dd')`"),
    ("epoch_ms epoch_millis to_millis", "write `unix_millis(x)`, or `timestamp_millis(x)` the other way round"),
    ("epoch to_epoch epoch_seconds to_unixtime tounixtime unixtime to_unix_seconds", "write `unix_seconds(x)`"),
    ("isnan is_nan", "write `x = cast('NaN' as double)`: NaN is equal to itself"),
    ("try_add try_subtract try_multiply try_mod try_sum try_avg", _OVERFLOW),
    ("json_array_contains", "write `array_contains(from_json(text, 'array<string>'), x)`"),
    ("is_json is_valid_json json_valid", "write `from_json(text, 'a string') is not null`"),
    ("json_array_length", "write `size(from_json(text, 'array<string>'))`"),
    ("json_object_keys json_keys", "write `map_keys(from_json(text, 'map<string, string>'))`"),
    ("substring_index", "write `split(x, ',')[0]` for what stands before the first one"),
    ("as_value", "give the column a second name: `k as name`"),
    ("lit col column", "write the value or the column itself"),
    ("typeof pg_typeof", "nothing replaces it: `vsc compile FILE --emit topology` shows every type"),
    ("hash murmur_hash murmur3_hash farm_fingerprint", "write `xxhash64(x)`, which gives other numbers"),
    ("days hours try_make_timestamp time_trunc try_to_time sum0", "`vsc explain VSC112` lists the functions"),
    ("left", "write `substring(x, 1, n)`"),
    ("right", "write `substring(x, -n)`"),
    ("array_join", "write `concat_ws(',', x)`"),
    ("string_to_array", "write `split(x, ',')`"),
    ("split_part", "write `split(x, ',')[0]` for the first part"),
    ("trunc truncate", "write `cast(x as bigint)` for a number, `date_trunc('day', x)` for a timestamp"),
    ("square", "write `x * x`"),
    ("mod", "write `x % y`"),
    ("div", "write `floor(x / y)`"),
    ("nvl2", "write `if(x is not null, y, z)`"),
    ("zeroifnull", "write `coalesce(x, 0)`"),
    ("nullifzero", "write `nullif(x, 0)`"),
    ("isnull", "write `x is null`; with two arguments `coalesce(x, y)`"),
    ("isnotnull", "write `x is not null`"),
    ("decode switch choose", "write `case x when ... then ... end`"),
    ("ilike", "write `lower(x) like 'a%'`"),
    ("date_sub subdate", "write `date_add(x, -days)`"),
    ("dayofyear doy day_of_year", "write `datediff(x, cast(date_trunc('year', x) as date)) + 1`"),
    ("week weekofyear isoweek week_of_year", "write `date_trunc('week', x)`: the start of its week"),
    ("weekday isodow day_of_week", "write `dayofweek(x)`: 1 is Sunday"),
    ("to_date_time todate to_datetime str_to_date date_parse", "write `to_timestamp(text, 'yyyy-MM-dd')`"),
    ("make_date date_from_parts datefromparts", "write `to_date(text, 'yyyy-MM-dd')`"),
    ("make_timestamp timestamp_from_parts", "write `to_timestamp(text, 'yyyy-MM-dd')`"),
    ("to_timestamp_ltz to_timestamp_ntz to_timestamp_tz",
     "write `to_timestamp(text)`, or `timestamp_millis(x)` for a number"),
    ("timestamp_micros", "write `timestamp_millis(cast(x / 1000 as bigint))`"),
    ("unix_micros", "write `unix_millis(x) * 1000`"),
    ("unix_date", "write `datediff(x, to_date('1970-01-01'))`"),
    ("unix_timestamp", "write `unix_seconds(x)` for a timestamp, `unix_seconds(event_time())` for now"),
    ("to_unix_timestamp", "write `unix_seconds(x)` for a timestamp, `unix_seconds(to_timestamp(x))` for a text"),
    ("sha224 sha256 sha384 sha512", "write `sha2(x, 256)`"),
    ("named_struct struct_pack", "write `struct(x as a, y as b)`"),
    ("get try_element_at nth", "write `a[i]`, from 0, or `element_at(a, i)`, from 1"),
    ("headers rowkey rowpartition rowoffset", _KAFKA),
    ("from_csv to_csv from_xml to_xml from_protobuf from_avro",
     "nothing replaces it: the `format` of a source reads rows"),
    ("current_user session_user user database current_database version",
     "nothing replaces it: give a variable, `${name}`"),
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
    if similar is None:
        return "`vsc explain VSC112` lists the functions", None
    return f"did you mean `{similar}`?", misspelt(name, known)


def instead_of_column(name: str, near: str | None) -> str | None:
    """The help for `name`, which is not a column: what it means in other systems; `near` names a similar column."""
    help, duration = _helps().get(name.lower()), iso_duration(name)
    if help is _BOUND:
        return "a table with a `window` has the columns `window_start` and `window_end` by itself"
    if help is _EVENT_TIME or (near is None and help is _KAFKA):
        return help
    return near or (None if duration is None else f"write `{duration}`")
