-- The same results from the same files, by DuckDB, once everything has arrived.
set timezone = 'UTC';

create table customers as
select coalesce(after.id, before.id) as id, after.country as country, make_timestamptz(source.ts_ms * 1000) as since
from read_json(
  $data || '/customers/*.json',
  columns = {
    before: 'struct(id bigint, country varchar)',
    after: 'struct(id bigint, country varchar)',
    source: 'struct(ts_ms bigint)'
  }
);

create table prices as
select sku, price, currency, valid_from as since
from read_json(
  $data || '/prices.json',
  columns = {sku: 'varchar', price: 'decimal(10, 2)', currency: 'varchar', valid_from: 'timestamptz'}
);

create table rates as
select
  currency,
  replace(rate, ',', '.')::decimal(12, 4) as rate,
  strptime(valid_from, '%d.%m.%Y %H:%M') at time zone 'Europe/Berlin' as since
from read_csv($data || '/rates.csv', delim = ';', all_varchar = true);

create table lines as
select order_id, customer, ordered_at, unnest(lines) as line
from read_json(
  $data || '/orders/*.json',
  columns = {
    order_id: 'varchar',
    customer: 'bigint',
    ordered_at: 'timestamptz',
    lines: 'struct(sku varchar, pieces int)[]'
  }
);

create table placed as
select
  order_id,
  customer,
  coalesce(country, 'unknown') as country,
  (line.pieces * price * rate)::decimal(12, 2) as euros,
  ordered_at
from lines
asof left join prices on line.sku = prices.sku and ordered_at >= prices.since
asof left join rates on prices.currency = rates.currency and ordered_at >= rates.since
asof left join customers on customer = customers.id and ordered_at >= customers.since;

create table revenue as
select country, (ordered_at at time zone 'Europe/Berlin')::date as day, count(*) as lines, sum(euros) as revenue
from placed
group by all;

create table alerts as
with recursive
  large as (select distinct customer, ordered_at from placed where euros >= 800),
  alert as (
    select customer, min(ordered_at) as ordered_at from large group by customer
    union all
    select customer, min(large.ordered_at)
    from alert join large using (customer)
    where large.ordered_at >= alert.ordered_at + interval 24 hours
    group by customer, alert.ordered_at
  )
select customer, ordered_at from alert;
