-- A table whose folders are not known, because it is older than their list and its metadata cannot be read,
-- stops what may concern it, not everything; and a purge ends the table that it has walked, not a later
-- version of it.

-- As before; folders are found once, not for each path of them: a purge names a hundred thousand.
CREATE OR REPLACE FUNCTION frazil.shared_paths(p_table uuid, p_path text[]) RETURNS SETOF text
LANGUAGE sql STABLE SET enable_seqscan = off AS $$
	WITH p AS MATERIALIZED (
		SELECT u.path, regexp_replace(u.path, '/[^/]*$', '') AS folder, t.table_id AS view,
			t.view_location
		FROM unnest(p_path) u(path)
			LEFT JOIN frazil.object o ON o.path = u.path
				AND p_table = '00000000-0000-0000-0000-000000000000'
			LEFT JOIN frazil.tabular t ON t.table_id = o.table_id AND t.kind = 1
	), f AS MATERIALIZED (
		SELECT DISTINCT p.folder, coalesce(p.view, p_table) AS own FROM p
	), s AS MATERIALIZED (
		SELECT f.folder, f.own FROM f WHERE EXISTS (SELECT FROM frazil.place o
			WHERE o.path = ANY (frazil.folders_of(frazil.place_of(f.folder)))
			AND o.table_id <> f.own)
	)
	SELECT p.path FROM p WHERE p.path = p.view_location
		OR (p.folder, coalesce(p.view, p_table)) IN (SELECT s.folder, s.own FROM s)
$$;

-- What must stay of claimed paths: those in a folder of another table or view (waits: false), and those
-- that may lie in a folder of a table that is not read yet (true), for now. Where such a one keeps its
-- metadata is known. Its other folders are those that its properties name, and what others keep in their
-- own location lies in none of them; what they keep in a folder that their properties name may. Of a
-- table that is gone its drop has said which is which. Just after an upgrade many are unread: then all
-- waits. p_table as in shared_paths.
CREATE FUNCTION frazil.clean_look(p_table uuid, p_path text[])
RETURNS TABLE (path text, waits boolean) LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
	c_many CONSTANT int4 := 100;
	v_folders text[];
	v_home text;
BEGIN
	SELECT array_agg(frazil.place_of(regexp_replace(q.metadata_location, '/[^/]*$', ''))) INTO v_folders
	FROM (SELECT h.metadata_location FROM frazil.tabular t JOIN frazil.head h USING (table_id)
		WHERE NOT t.placed LIMIT c_many + 1) q;
	RETURN QUERY SELECT s.path, false FROM frazil.shared_paths(p_table, p_path) s(path);
	IF v_folders IS NULL THEN
		RETURN;
	END IF;
	SELECT frazil.place_of(t.location) INTO v_home FROM frazil.tabular t WHERE t.table_id = p_table;
	RETURN QUERY SELECT u.path, true FROM unnest(p_path) u(path)
	WHERE cardinality(v_folders) > c_many
		OR EXISTS (SELECT FROM unnest(v_folders) f(folder)
			WHERE starts_with(frazil.place_of(u.path), f.folder))
		OR CASE WHEN p_table = '00000000-0000-0000-0000-000000000000' THEN EXISTS (
				SELECT FROM frazil.object o WHERE o.path = u.path AND o.epoch = 2
				AND o.owner IS NULL)
			ELSE NOT coalesce(starts_with(frazil.place_of(u.path), v_home), false) END;
END
$$;

-- As before, and: p_version, unless it is negative, is the version that the purge has walked; when the head
-- has another one nothing is done (there: true). Epoch 1: garbage in the table's location, 2: in another
-- folder of its own. Both without an owner.
CREATE FUNCTION frazil.drop_head(p_table uuid, p_incarnation int8, p_version int8, p_purge text[],
	p_all boolean)
RETURNS TABLE (done boolean, kept text[], metadata text, there boolean) LANGUAGE plpgsql AS $$
DECLARE
	v_root text;
	v_version int8;
BEGIN
	SELECT h.metadata_location, h.version, rtrim(t.location, '/') || '/'
	INTO metadata, v_version, v_root
	FROM frazil.head h JOIN frazil.tabular t USING (table_id)
	WHERE h.table_id = p_table AND h.incarnation = p_incarnation FOR UPDATE OF h;
	there := FOUND;
	IF there AND p_version >= 0 AND v_version <> p_version THEN
		done := false;
		kept := '{}';
		RETURN NEXT;
		RETURN;
	END IF;
	done := frazil.drop_table(p_table, p_incarnation, '{}');
	kept := '{}';
	IF done AND cardinality(p_purge) > 0 THEN
		SELECT coalesce(array_agg(s.path), '{}') INTO kept
		FROM frazil.shared_paths(p_table, p_purge) s(path);
		INSERT INTO frazil.object (path, table_id, epoch, state, since_ms)
		SELECT DISTINCT u.path COLLATE "C", p_table,
			CASE WHEN starts_with(u.path, v_root) THEN 1 ELSE 2 END, 2, frazil.now_ms()
		FROM unnest(p_purge) u(path)
		WHERE u.path NOT IN (SELECT k.path FROM unnest(kept) k(path)) ORDER BY 1
		ON CONFLICT DO NOTHING;
		UPDATE frazil.object o SET owner = NULL,
			epoch = CASE WHEN starts_with(o.path, v_root) THEN 1 ELSE 2 END
		FROM (SELECT DISTINCT q.path COLLATE "C" AS path FROM unnest(p_purge) q(path)) u
		WHERE o.path = u.path AND o.table_id = p_table AND o.state IN (2, 3) AND o.epoch = 0;
	END IF;
	IF done AND p_all THEN
		UPDATE frazil.object o SET owner = NULL, epoch = 1
		WHERE o.table_id = p_table AND o.state IN (2, 3) AND o.epoch = 0
			AND starts_with(o.path, v_root);
	END IF;
	RETURN NEXT;
END
$$;

-- What purges of before have queued: where it lies was not written down.
UPDATE frazil.object o SET epoch = 2
WHERE o.state IN (2, 3) AND o.epoch = 1 AND o.owner IS NULL
	AND EXISTS (SELECT FROM frazil.tabular t WHERE NOT t.placed);
