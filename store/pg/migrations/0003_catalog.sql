-- Namespaces and names. A namespace's row is locked by whoever adds to it or renames in it (no key
-- update), by whoever creates a child (key share) and by its drop (update).

CREATE FUNCTION frazil.namespace_of(p_warehouse text, p_levels text[]) RETURNS int8
LANGUAGE sql STABLE AS $$
	SELECT n.namespace_id FROM frazil.namespace n JOIN frazil.warehouse w USING (warehouse_id)
	WHERE w.name = p_warehouse AND n.parent = p_levels[1:cardinality(p_levels) - 1]
		AND n.name = p_levels[cardinality(p_levels)]
$$;

-- A warehouse keeps the location it was first given, unless nothing lives in it.
CREATE FUNCTION frazil.ensure_warehouse(p_name text, p_location text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
	v_id int8;
BEGIN
	INSERT INTO frazil.warehouse (name, location) VALUES (p_name, p_location)
	ON CONFLICT DO NOTHING;
	SELECT w.warehouse_id INTO v_id FROM frazil.warehouse w WHERE w.name = p_name FOR UPDATE;
	UPDATE frazil.warehouse w SET location = p_location
	WHERE w.warehouse_id = v_id AND w.location <> p_location
		AND NOT EXISTS (SELECT FROM frazil.namespace n WHERE n.warehouse_id = v_id);
	RETURN EXISTS (SELECT FROM frazil.warehouse w WHERE w.warehouse_id = v_id
		AND w.location = p_location);
END
$$;

-- 0 created, 1 no warehouse, 2 no parent, 3 exists
CREATE FUNCTION frazil.create_namespace(p_warehouse text, p_levels text[], p_keys text[],
	p_values text[]) RETURNS int4 LANGUAGE plpgsql AS $$
DECLARE
	v_n int4 := cardinality(p_levels);
	v_warehouse int8;
BEGIN
	SELECT w.warehouse_id INTO v_warehouse FROM frazil.warehouse w WHERE w.name = p_warehouse;
	IF NOT FOUND THEN
		RETURN 1;
	END IF;
	IF v_n > 1 THEN
		PERFORM 1 FROM frazil.namespace n WHERE n.warehouse_id = v_warehouse
			AND n.parent = p_levels[1:v_n - 2] AND n.name = p_levels[v_n - 1]
			FOR KEY SHARE;
		IF NOT FOUND THEN
			RETURN 2;
		END IF;
	END IF;
	INSERT INTO frazil.namespace (warehouse_id, parent, name, properties)
	VALUES (v_warehouse, p_levels[1:v_n - 1], p_levels[v_n], jsonb_object(p_keys, p_values))
	ON CONFLICT DO NOTHING;
	RETURN CASE WHEN FOUND THEN 0 ELSE 3 END;
END
$$;

-- 0 dropped, 1 not there, 2 not empty
CREATE FUNCTION frazil.drop_namespace(p_warehouse text, p_levels text[]) RETURNS int4
LANGUAGE plpgsql AS $$
DECLARE
	v_id int8 := frazil.namespace_of(p_warehouse, p_levels);
	v_warehouse int8;
BEGIN
	SELECT n.warehouse_id INTO v_warehouse FROM frazil.namespace n
	WHERE n.namespace_id = v_id FOR UPDATE;
	IF NOT FOUND THEN
		RETURN 1;
	END IF;
	IF EXISTS (SELECT FROM frazil.tabular t WHERE t.namespace_id = v_id)
			OR EXISTS (SELECT FROM frazil.namespace n WHERE n.warehouse_id = v_warehouse
				AND n.parent = p_levels) THEN
		RETURN 2;
	END IF;
	DELETE FROM frazil.namespace n WHERE n.namespace_id = v_id;
	RETURN 0;
END
$$;

-- found, keys that were set, keys removed, keys to remove that were not there
CREATE FUNCTION frazil.update_namespace(p_warehouse text, p_levels text[], p_remove text[],
	p_keys text[], p_values text[])
RETURNS TABLE (found_it boolean, updated text[], removed text[], missing text[])
LANGUAGE plpgsql AS $$
DECLARE
	v_id int8 := frazil.namespace_of(p_warehouse, p_levels);
	v_old jsonb;
BEGIN
	SELECT n.properties INTO v_old FROM frazil.namespace n
	WHERE n.namespace_id = v_id FOR NO KEY UPDATE;
	found_it := FOUND;
	IF found_it THEN
		UPDATE frazil.namespace n
		SET properties = (v_old - p_remove) || jsonb_object(p_keys, p_values)
		WHERE n.namespace_id = v_id;
		updated := p_keys;
		SELECT coalesce(array_agg(k) FILTER (WHERE v_old ? k), '{}'),
			coalesce(array_agg(k) FILTER (WHERE NOT v_old ? k), '{}')
		INTO removed, missing FROM unnest(p_remove) k;
	END IF;
	RETURN NEXT;
END
$$;

-- 0 renamed, 1 no source namespace, 2 no such source, 3 no destination namespace, 4 the new name is
-- a table's, 5 the new name is a view's
CREATE FUNCTION frazil.rename_tabular(p_warehouse text, p_from text[], p_from_name text,
	p_to text[], p_to_name text, p_kind int2) RETURNS int4 LANGUAGE plpgsql AS $$
DECLARE
	v_from int8 := frazil.namespace_of(p_warehouse, p_from);
	v_to int8 := frazil.namespace_of(p_warehouse, p_to);
	v_kind int2;
BEGIN
	PERFORM 1 FROM frazil.namespace n WHERE n.namespace_id IN (v_from, v_to)
		ORDER BY n.namespace_id FOR NO KEY UPDATE;
	IF NOT EXISTS (SELECT FROM frazil.namespace n WHERE n.namespace_id = v_from) THEN
		RETURN 1;
	ELSIF NOT EXISTS (SELECT FROM frazil.tabular t WHERE t.namespace_id = v_from
			AND t.name = p_from_name AND t.kind = p_kind) THEN
		RETURN 2;
	ELSIF NOT EXISTS (SELECT FROM frazil.namespace n WHERE n.namespace_id = v_to) THEN
		RETURN 3;
	END IF;
	SELECT t.kind INTO v_kind FROM frazil.tabular t
	WHERE t.namespace_id = v_to AND t.name = p_to_name;
	IF FOUND THEN
		RETURN 4 + v_kind;
	END IF;
	UPDATE frazil.tabular t SET namespace_id = v_to, name = p_to_name
	WHERE t.namespace_id = v_from AND t.name = p_from_name AND t.kind = p_kind;
	RETURN CASE WHEN FOUND THEN 0 ELSE 2 END;
END
$$;

-- 0 created, 2 name is a table's, 3 name is a view's, 4 no namespace, 5 uuid live already
CREATE FUNCTION frazil.create_view(p_warehouse text, p_levels text[], p_name text, p_view uuid,
	p_location text, p_metadata text) RETURNS int4 LANGUAGE plpgsql AS $$
DECLARE
	v_ns int8 := frazil.namespace_of(p_warehouse, p_levels);
	v_kind int2;
BEGIN
	PERFORM 1 FROM frazil.namespace n WHERE n.namespace_id = v_ns FOR NO KEY UPDATE;
	IF NOT FOUND THEN
		RETURN 4;
	END IF;
	SELECT t.kind INTO v_kind FROM frazil.tabular t
	WHERE t.namespace_id = v_ns AND t.name = p_name;
	IF FOUND THEN
		RETURN 2 + v_kind;
	END IF;
	INSERT INTO frazil.tabular (table_id, namespace_id, name, kind, location, view_version,
		view_location)
	VALUES (p_view, v_ns, p_name, 1, p_location, 1, p_metadata)
	ON CONFLICT (table_id) DO NOTHING;
	RETURN CASE WHEN FOUND THEN 0 ELSE 5 END;
END
$$;
