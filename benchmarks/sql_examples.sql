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

-- # More of that kind, of the flights
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

-- # Tumult Analytics, the questions of its tutorials
-- Tutorial 1: how many members
SELECT COUNT(*) AS n FROM members;
-- Tutorial 2: how many of them are minors
SELECT COUNT(*) AS n FROM members WHERE age < 18;
-- Tutorial 3: their mean age, between bounds
SELECT AVG(LEAST(GREATEST(age, 0), 120)) AS mean_age FROM members;
-- Tutorial 3: how many books they borrowed, at most 200 each
SELECT SUM(LEAST(GREATEST(books_borrowed, 0), 200)) AS books FROM members;
-- Tutorial 4: the eldest by age; every age that the schema lists has a row, whoever is there
SELECT age, COUNT(*) AS n FROM members WHERE age >= 80 GROUP BY age;
-- Tutorial 4: the mean age by education
SELECT education_level, AVG(LEAST(GREATEST(age, 0), 120)) AS mean_age
FROM members GROUP BY education_level ORDER BY mean_age;
-- Tutorial 4: the youngest by age, also of an age that nobody has
SELECT age, COUNT(*) AS n FROM members WHERE age BETWEEN 5 AND 17 GROUP BY age;
-- Tutorial 4: the young by age and education
SELECT age, education_level, COUNT(*) AS n FROM members
WHERE age BETWEEN 13 AND 21 GROUP BY age, education_level ORDER BY age, education_level;
-- Tutorial 4: the same, only of pairs that are possible
SELECT age, education_level, COUNT(*) AS n FROM members
WHERE education_level = 'up-to-high-school' AND age BETWEEN 13 AND 21
   OR education_level = 'high-school-diploma' AND age BETWEEN 17 AND 21
   OR education_level = 'bachelors-associate' AND age BETWEEN 19 AND 21
GROUP BY age, education_level HAVING COUNT(*) > 25;
-- Tutorial 5: by tens of years and gender, computed of each record
SELECT age - age % 10 AS decade, gender, COUNT(*) AS n FROM members GROUP BY age - age % 10, gender;
-- Tutorial 5: the same by CASE
SELECT CASE WHEN age < 10 THEN 0 WHEN age < 20 THEN 10 WHEN age < 30 THEN 20 WHEN age < 40 THEN 30 WHEN age < 50 THEN 40
            WHEN age < 60 THEN 50 WHEN age < 70 THEN 60 WHEN age < 80 THEN 70 WHEN age < 90 THEN 80 ELSE 90 END AS decade,
       gender, COUNT(*) AS n FROM members GROUP BY decade, gender;
-- Tutorial 5: by genre, of which a record lists several
SELECT genre, COUNT(*) AS n FROM members, UNNEST(string_split(favorite_genres, ';')) AS g(genre) GROUP BY genre;
-- Tutorial 5: by city, joined from a public table
SELECT city, COUNT(*) AS n FROM members JOIN zip_codes USING (zip_code) GROUP BY city;
-- Tutorial 5: the same, where the custodian has registered the city as a column
SELECT city, COUNT(*) AS n FROM members WHERE city IN ('Durham', 'Raleigh', 'Chapel Hill', 'Cary')
GROUP BY city HAVING n > 0 ORDER BY n DESC;
-- Tutorial 6: the five books that were borrowed most; whose rows they are, the custodian says by `--person`
SELECT title, COUNT(*) AS n FROM checkouts GROUP BY title ORDER BY n DESC LIMIT 5;
-- Tutorial 6: how many different members borrowed a book
SELECT title, COUNT(DISTINCT member_id) AS n FROM checkouts GROUP BY title;

-- # SmartNoise SQL (OpenDP), the questions of its introductions
-- Counts by marriage
SELECT married, COUNT(*) AS n FROM pums GROUP BY married;
-- Mean income and counts by marriage
SELECT married, AVG(LEAST(GREATEST(income, 0), 200000)) AS income, COUNT(*) AS n FROM pums GROUP BY married;
-- Mean age by sex
SELECT sex, AVG(age) AS age FROM pums GROUP BY sex;
-- The same with a schema's name before the table's
SELECT sex, AVG(age) AS age FROM pums.pums GROUP BY sex;
-- A mean in thousands
SELECT AVG(LEAST(GREATEST(income, 0), 200000)) / 1000 AS income_k FROM pums;
-- A quotient of two means, by marriage
SELECT AVG(LEAST(GREATEST(income, 0), 200000)) / AVG(age) AS quotient FROM pums GROUP BY married;
-- Groups by what nobody may list
SELECT last_name, COUNT(*) AS n FROM pums GROUP BY last_name;
