-- What the database saw, beside the product: every write of a checkpoint with the fence its session
-- carried and the newest epoch of that moment.  Installed by the chaos alone.
CREATE TABLE witness (
    seq    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id text NOT NULL,
    what   text NOT NULL,
    fence  text,
    epoch  bigint
);

CREATE FUNCTION celegraph_witness() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO witness (run_id, what, fence, epoch)
    SELECT NEW.thread_id, TG_TABLE_NAME, current_setting('celegraph.fence', true), l.epoch
      FROM run_leases l WHERE l.run_id = NEW.thread_id;
    RETURN NULL;
END $$;

CREATE TRIGGER zz_witness AFTER INSERT OR UPDATE ON checkpoints
    FOR EACH ROW EXECUTE FUNCTION celegraph_witness();
CREATE TRIGGER zz_witness AFTER INSERT OR UPDATE ON checkpoint_writes
    FOR EACH ROW EXECUTE FUNCTION celegraph_witness();
