-- A purge spares what lies beneath the root of another table or view, inside or around this one's.
-- Returns the spared paths.
CREATE FUNCTION frazil.drop_and_purge(p_table uuid, p_incarnation int8, p_purge text[])
RETURNS TABLE (done boolean, kept text[]) LANGUAGE plpgsql AS $$
DECLARE
	v_roots text[];
BEGIN
	kept := '{}';
	done := frazil.drop_table(p_table, p_incarnation, '{}');
	IF NOT done OR cardinality(p_purge) = 0 THEN
		RETURN NEXT;
		RETURN;
	END IF;
	-- Every folder above a path, each looked up in the index of locations.
	WITH folder AS (
		SELECT DISTINCT regexp_replace(u.path, '/[^/]*$', '') AS path FROM unnest(p_purge) u(path)
	), part AS (
		SELECT string_to_array(f.path, '/') AS v FROM folder f
	), above AS (
		SELECT DISTINCT array_to_string(p.v[1:n.i], '/') AS path
		FROM part p, LATERAL generate_series(1, cardinality(p.v)) n(i)
	)
	SELECT coalesce(array_agg(DISTINCT rtrim(t.location, '/') || '/'), '{}') INTO v_roots
	FROM above a JOIN frazil.tabular t ON t.location = a.path OR t.location = a.path || '/';
	SELECT coalesce(array_agg(u.path), '{}') INTO kept FROM unnest(p_purge) u(path)
	WHERE EXISTS (SELECT FROM unnest(v_roots) r(root) WHERE starts_with(u.path, r.root));
	INSERT INTO frazil.object (path, table_id, state, since_ms)
	SELECT DISTINCT u.path COLLATE "C", p_table, 2, frazil.now_ms() FROM unnest(p_purge) u(path)
	WHERE NOT EXISTS (SELECT FROM unnest(v_roots) r(root) WHERE starts_with(u.path, r.root))
	ORDER BY 1 ON CONFLICT DO NOTHING;
	RETURN NEXT;
END
$$;
