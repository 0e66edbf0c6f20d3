-- Silence says yes only for people who had time to say no.  A run that an outage has kept until after an
-- absolute deadline would be approved the moment it asks: such a question stays open instead, and is brought
-- up again until somebody answers.  Only a yes is held back; a no does nothing that could not be asked for again.
CREATE OR REPLACE FUNCTION celegraph_asking() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    NEW.silence := celegraph_silence(NEW.kind, NEW.policy);
    IF NEW.silence = 'approve' AND NEW.deadline_at <= NEW.created_at THEN
        NEW.silence := NULL;
    END IF;
    NEW.next_action_at := least(celegraph_step_at(NEW.created_at, NEW.policy, 0), NEW.deadline_at);
    RETURN NEW;
END $$;
