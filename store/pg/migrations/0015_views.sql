-- Metadata files of views pass through the ledger as those of tables that come do: on it (epoch -1)
-- before they are written, off it with the statement that has a row name them. What an attempt left
-- behind, whose statement never came or was refused, belongs to no head and is deleted with the objects
-- of tables that are gone.

-- The file that a view's row names from now on. p_attempt: what wrote it, NULL when it was there before
-- (register). FZ002: it has been given up meanwhile, or belongs to an attempt that is under way.
CREATE FUNCTION frazil.take_file(p_attempt uuid, p_path text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	IF p_attempt IS NULL THEN
		DELETE FROM frazil.object o WHERE o.path = p_path AND o.state = 2;
		IF NOT EXISTS (SELECT FROM frazil.object o WHERE o.path = p_path) THEN
			RETURN true;
		END IF;
	ELSE
		DELETE FROM frazil.object o WHERE o.path = p_path AND o.owner = p_attempt AND o.state = 1;
		IF FOUND THEN
			RETURN true;
		END IF;
	END IF;
	RAISE EXCEPTION 'a metadata file is not to be had' USING ERRCODE = 'FZ002';
END
$$;

-- As before, and the file leaves the ledger.
CREATE FUNCTION frazil.replace_view(p_view uuid, p_version int8, p_attempt uuid, p_metadata text,
	p_places text[])
RETURNS int4 LANGUAGE plpgsql AS $$
BEGIN
	UPDATE frazil.tabular t SET view_version = t.view_version + 1, view_location = p_metadata
	WHERE t.table_id = p_view AND t.kind = 1 AND t.view_version = p_version;
	IF NOT FOUND THEN
		RETURN 1;
	END IF;
	PERFORM frazil.take_file(p_attempt, p_metadata);
	PERFORM frazil.take_places(array_fill(p_view, ARRAY[cardinality(p_places)]), p_places);
	RETURN 0;
END
$$;

-- As before; p_table nil: of each path that which its row of frazil.object names. A view that is there
-- does not keep others of its files than the one that its row names: nobody else reads them.
CREATE OR REPLACE FUNCTION frazil.shared_paths(p_table uuid, p_path text[]) RETURNS SETOF text
LANGUAGE sql STABLE SET enable_seqscan = off AS $$
	WITH p AS (
		SELECT u.path, regexp_replace(u.path, '/[^/]*$', '') AS folder, t.table_id AS view,
			t.view_location
		FROM unnest(p_path) u(path)
			LEFT JOIN frazil.object o ON o.path = u.path
				AND p_table = '00000000-0000-0000-0000-000000000000'
			LEFT JOIN frazil.tabular t ON t.table_id = o.table_id AND t.kind = 1
	), f AS (
		SELECT DISTINCT p.folder, p.view FROM p
	), s AS (
		SELECT f.folder, f.view FROM f WHERE EXISTS (SELECT FROM frazil.place o
			WHERE o.path = ANY (frazil.folders_of(frazil.place_of(f.folder)))
			AND o.table_id <> coalesce(f.view, p_table))
	)
	SELECT p.path FROM p WHERE p.path = p.view_location OR EXISTS (SELECT FROM s
		WHERE s.folder = p.folder AND s.view IS NOT DISTINCT FROM p.view)
$$;
