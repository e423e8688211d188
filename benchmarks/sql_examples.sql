-- Questions for sql_examples.py, parted by the line that says what each is.

-- # TPC-H, adapted to one table
-- Query 1, what it adds up of single columns
SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS sum_qty, SUM(l_extendedprice) AS sum_price,
       AVG(l_quantity) AS avg_qty, AVG(l_extendedprice) AS avg_price, AVG(l_discount) AS avg_disc, COUNT(*) AS n
FROM lineitem WHERE l_shipdate < '1998-09-01'
GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus;
-- Query 1, what it adds up of two columns multiplied
SELECT l_returnflag, SUM(l_extendedprice * (1 - l_discount)) AS sum_disc_price
FROM lineitem GROUP BY l_returnflag;
-- Query 6, as it is
SELECT SUM(l_extendedprice * l_discount) AS total FROM lineitem
WHERE l_shipdate >= '1994-01-01' AND l_shipdate < '1995-01-01'
  AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24;
-- Query 6, where the custodian has registered the product as a column
SELECT SUM(revenue) AS total FROM lineitem
WHERE l_shipdate >= '1994-01-01' AND l_shipdate < '1995-01-01'
  AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24;

-- # ClickBench, its aggregates
-- All visits
SELECT COUNT(*) AS n FROM hits;
-- Visits that come from an advertisement
SELECT COUNT(*) AS n FROM hits WHERE AdvEngineID <> 0;
-- Sums, counts and means
SELECT SUM(AdvEngineID) AS total, COUNT(*) AS n, AVG(ResolutionWidth) AS width FROM hits;
-- Different visitors
SELECT COUNT(DISTINCT RegionID) AS n FROM hits;
-- First and last day
SELECT MIN(EventDate) AS first, MAX(EventDate) AS last FROM hits;
-- Advertisements by how often they led here
SELECT AdvEngineID, COUNT(*) AS n FROM hits WHERE AdvEngineID <> 0 GROUP BY AdvEngineID ORDER BY n DESC;
-- Regions, with sums and means, the ten largest
SELECT RegionID, SUM(AdvEngineID) AS total, COUNT(*) AS n, AVG(ResolutionWidth) AS width
FROM hits GROUP BY RegionID ORDER BY n DESC LIMIT 10;
-- The most frequent phrases, of those that the schema lists
SELECT SearchPhrase, COUNT(*) AS n FROM hits
WHERE SearchPhrase IN ('weather', 'train times', 'recipes', 'news', 'maps', 'football')
GROUP BY SearchPhrase HAVING n > 50 ORDER BY n DESC LIMIT 3;
-- Engines and phrases together
SELECT SearchEngineID, SearchPhrase, COUNT(*) AS n FROM hits
WHERE SearchPhrase IN ('weather', 'train times', 'recipes', 'news', 'maps', 'football')
GROUP BY SearchEngineID, SearchPhrase ORDER BY n DESC LIMIT 10;
-- A part of an address, which is no attribute
SELECT COUNT(*) AS n FROM hits WHERE URL LIKE '%google%';
-- The same, where the custodian has registered it as a column
SELECT COUNT(*) AS n FROM hits WHERE UrlHasGoogle = 'yes';
-- A sum of a sum
SELECT SUM(ResolutionWidth) AS zero, SUM(ResolutionWidth) + COUNT(*) AS one FROM hits;
-- Views by day
SELECT EventDate, COUNT(*) AS n FROM hits
WHERE RegionID = 2 AND IsRefresh = 0 AND EventDate >= '2013-07-01' AND EventDate < '2013-08-01' GROUP BY EventDate;

-- # As tutorials begin
-- How many
SELECT COUNT(*) AS n FROM flights;
-- How many, with a filter
SELECT COUNT(*) AS n FROM flights WHERE origin = 'JFK' AND dep_delay >= 60;
-- A mean with bounds
SELECT AVG(LEAST(GREATEST(dep_delay, -15), 180)) AS mean FROM flights WHERE dep_delay IS NOT NULL;
-- A sum with bounds, by group
SELECT carrier, SUM(LEAST(GREATEST(dep_delay, 0), 180)) AS minutes FROM flights
WHERE dep_delay IS NOT NULL GROUP BY carrier;
-- Counts by groups of two attributes
SELECT origin, month, COUNT(*) AS n FROM flights GROUP BY origin, month;
-- Means by groups of two attributes
SELECT carrier, month, AVG(LEAST(GREATEST(dep_delay, -15), 180)) AS mean FROM flights
WHERE dep_delay IS NOT NULL AND carrier IN ('UA', 'B6', 'EV', 'DL', 'AA') GROUP BY carrier, month HAVING COUNT(*) > 0;
-- Medians by group
SELECT carrier, MEDIAN(distance) AS middle FROM flights GROUP BY carrier;
-- A standard deviation
SELECT STDDEV_POP(distance) AS deviation FROM flights;
-- Groups of one's own
SELECT CASE WHEN distance < 500 THEN 'short' WHEN distance < 1500 THEN 'middle' ELSE 'long' END AS far,
       COUNT(*) AS n FROM flights GROUP BY 1;
-- A share
SELECT origin, ROUND(100.0 * COUNT_IF(dep_delay >= 15) / COUNT(*), 1) AS late FROM flights GROUP BY origin;
-- Only groups that are large
SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier HAVING COUNT(*) > 10000 ORDER BY n DESC;
-- The largest value
SELECT MAX(dep_delay) AS most FROM flights;
-- Another table beside it
SELECT COUNT(*) AS n FROM flights JOIN planes USING (tailnum);
-- A question within a question
SELECT AVG(n) AS mean FROM (SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier);
-- Single rows
SELECT carrier, dep_delay FROM flights;
